// The kernels of derivatives: products of two tiles. Included by kernels_simd.h.
namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE {
namespace {

template <typename T>
ONEHOP_INLINE double lane_sum(Vector<T> v) {
  double sum = 0;
  for (int l = 0; l < lanes<T>; ++l) sum += static_cast<double>(v[l]);
  return sum;
}

// The imaginary parts of conj(bra) ket, which are also added to `column`.
template <typename T>
ONEHOP_INLINE Vector<T> add_row_product(const T* ket, const T* bra, T* column) {
  const Vector<T> product = load(bra) * load(ket + lanes<T>) - load(bra + lanes<T>) * load(ket);
  store(column, load(column) + product);
  return product;
}

template <typename T>
double probe_row(const T* ket, const T* bra, std::size_t vectors, T* columns) {
  Vector<T> total = {};
  for (std::size_t v = 0; v < vectors; ++v) {
    const std::size_t at = v * 2 * lanes<T>;
    total = total + add_row_product(ket + at, bra + at, columns + v * lanes<T>);
  }
  return lane_sum<T>(total);
}

// The sums of probe_vectors(), by vectors.
template <typename T, int Count>
struct BitProducts {
  Vector<T> plus[Count] = {};
  Vector<T> minus[Count] = {};

  ONEHOP_INLINE void add(const Vector<T>* ket, const Vector<T>* bra) {
#pragma GCC unroll 3
    for (int b = 0; b < Count; ++b) {
#pragma GCC unroll 8
      for (int j = 0; j < 1 << Count; ++j) {
        if ((j >> b & 1) != 0) continue;
        plus[b] = plus[b] + bra[j | 1 << b] * ket[j];
        minus[b] = minus[b] + bra[j] * ket[j | 1 << b];
      }
    }
  }
  void write(double* out) const {
    for (int b = 0; b < Count; ++b) out[b] = lane_sum<T>(plus[b] - minus[b]);
  }
};

// `Tile`: T, or const T without `Turn`, which also applies the butterflies of `tangents` to both states.
template <bool Turn, int Count, typename T, typename Tile>
void probe_groups(Tile* ket, Tile* bra, const TileShape& shape, const int* bits, const T* tangents, double* out) {
  const VectorGroups<Count> groups(shape, bits);
  Vector<T> t[Count];
  for (int b = 0; b < Count; ++b) t[b] = all<T>(Turn ? tangents[b] : 0);
  BitProducts<T, Count> products;
  groups.each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    std::size_t at = shape.place(v);
    for (int half = 0; half < 2; ++half, at += lanes<T>) {
      Vector<T> x[groups.size];
      Vector<T> y[groups.size];
      load_group<T, groups.size>(x, ket + at, groups.offsets);
      load_group<T, groups.size>(y, bra + at, groups.offsets);
      products.add(x, y);
      if constexpr (Turn) {
        turn_vectors<T, Count>(x, t);
        turn_vectors<T, Count>(y, t);
        store_group<T, groups.size>(x, ket + at, groups.offsets);
        store_group<T, groups.size>(y, bra + at, groups.offsets);
      }
    }
  });
  products.write(out);
}

template <typename T>
void probe_vectors(const T* ket, const T* bra, const TileShape& shape, const int* bits, int count, double* out) {
  const T* const none = nullptr;
  if (count == 1) return probe_groups<false, 1>(ket, bra, shape, bits, none, out);
  if (count == 2) return probe_groups<false, 2>(ket, bra, shape, bits, none, out);
  probe_groups<false, 3>(ket, bra, shape, bits, none, out);
}

// A sweep with butterflies keeps 2^bits vectors of both states in registers, and two sums and a tangent for each bit.
inline constexpr int max_probed_turns = simd::registers >= 32 ? 3 : 2;

template <typename T>
void probed_butterflies(T* ket, T* bra, const TileShape& shape, const int* bits, const T* tangents, int count,
                        double* out) {
  if (count == 1) return probe_groups<true, 1>(ket, bra, shape, bits, tangents, out);
  if (count == 2) return probe_groups<true, 2>(ket, bra, shape, bits, tangents, out);
  if constexpr (max_probed_turns >= 3) probe_groups<true, 3>(ket, bra, shape, bits, tangents, out);
}

template <typename T, int Bit>
ONEHOP_INLINE void add_lane_products(Vector<T> ket, Vector<T> bra, Vector<T>* sums) {
  if constexpr (Bit < lane_bits<T>) {
    sums[Bit] = sums[Bit] + bra * exchange<(1 << Bit)>(ket, LaneNumbers<T>());
    add_lane_products<T, Bit + 1>(ket, bra, sums);
  }
}

template <typename T>
void write_lane_sums(const Vector<T>* re, const Vector<T>* im, double* out) {
  for (int b = 0; b < lane_bits<T>; ++b) {
    const Vector<T> sum = re[b] + im[b];
    out[b] = 0;
    for (int l = 0; l < lanes<T>; ++l)
      out[b] += (l >> b & 1) != 0 ? static_cast<double>(sum[l]) : -static_cast<double>(sum[l]);
  }
}

template <bool Turn, typename T, typename Tile>
void probe_rows(Tile* ket, Tile* bra, const TileShape& shape, const T* tangents, unsigned signs, double* out) {
  static constexpr T none[lane_bits<T>] = {};
  const LaneTurns<T> turns(Turn ? tangents : none, signs);
  Vector<T> re[lane_bits<T>] = {};
  Vector<T> im[lane_bits<T>] = {};
  const auto step = [&](Tile* x, Tile* y, Vector<T>* sums) ONEHOP_INLINE_LAMBDA {
    Vector<T> of_ket = load(x);
    Vector<T> of_bra = load(y);
    if constexpr (Turn) {
      of_ket = of_ket * turns.sign;
      of_bra = of_bra * turns.sign;
    }
    add_lane_products<T, 0>(of_ket, of_bra, sums);
    if constexpr (Turn) {
      store(x, lane_butterfly<T, 0>(of_ket, turns.signed_tangents));
      store(y, lane_butterfly<T, 0>(of_bra, turns.signed_tangents));
    }
  };
  const std::size_t numbers = std::size_t{2} << shape.row_bits;
  for (std::size_t r = 0; r < shape.rows(); ++r) {
    const std::size_t row = r * shape.row_stride();
    for (std::size_t i = row; i < row + numbers; i += 2 * lanes<T>) {
      step(ket + i, bra + i, re);
      step(ket + i + lanes<T>, bra + i + lanes<T>, im);
    }
  }
  write_lane_sums<T>(re, im, out);
}

template <typename T>
void probe_lanes(const T* ket, const T* bra, const TileShape& shape, double* out) {
  probe_rows<false>(ket, bra, shape, static_cast<const T*>(nullptr), 0, out);
}

template <typename T>
void probed_lane_butterflies(T* ket, T* bra, const TileShape& shape, const T* tangents, unsigned signs, double* out) {
  probe_rows<true>(ket, bra, shape, tangents, signs, out);
}

// --- Strings ---

template <typename T, int Lane>
void probe_pairs_of(const T* ket, const T* bra, const TileShape& shape, const ProbeStep& step, double* out) {
  const std::size_t first = step.imaginary ? lanes<T> : 0;
  const std::size_t second = lanes<T> - first;
  Vector<T> a = {};
  Vector<T> b = {};
  VectorGroups<0>(shape, nullptr, step.controls, step.control_values).each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    const T* const left = bra + shape.place(v);
    const T* const right = ket + shape.place(v ^ step.partner);
    const Vector<T> sign = all<T>(__builtin_popcountll(v & step.sign) % 2 != 0 ? T(-1) : T(1));
    a = a + sign * load(left) * exchange<Lane>(load(right + first), LaneNumbers<T>());
    b = b + sign * load(left + lanes<T>) * exchange<Lane>(load(right + second), LaneNumbers<T>());
  });
  const Vector<T> sum = step.imaginary ? a - b : a + b;
  for (int l = 0; l < lanes<T>; ++l) out[l] = static_cast<double>(sum[l]);
}

template <typename T>
void probe_pairs(const T* ket, const T* bra, const TileShape& shape, const ProbeStep& step, double* out) {
  with_number<lanes<T>>(step.lane_partner, [&]<int Lane>() { probe_pairs_of<T, Lane>(ket, bra, shape, step, out); });
}

// --- Sums of strings ---

// What signed_add needs of a string, for `Unroll` vectors at a time, which hold pairs of real and imaginary parts.
template <typename T, int Unroll>
struct StringStep {
  const T* from;
  std::size_t far;   // of x: which vectors of the others
  std::size_t near;  // of x: which of the vectors at a time, as an offset in numbers
  std::size_t z;
  int lane;  // of x: the mask of exchanged numbers; the lowest bit exchanges real and imaginary parts
  Vector<T> factors[2][Unroll];  // by the parity of the higher bits

  void set(const SignedString<T>& string) {
    constexpr std::size_t together = lanes<T> / 2;
    constexpr std::size_t step = Unroll * together;
    // Without branches, which would be mispredicted: 1 or -1 for an even or odd parity.
    const auto sign = [](std::size_t bits) { return static_cast<T>(1 - 2 * (__builtin_popcountll(bits) % 2)); };
    from = reinterpret_cast<const T*>(string.in);
    far = string.x & ~(step - 1);
    near = 2 * (string.x & (step - together));
    z = string.z;
    lane = static_cast<int>(2 * (string.x & (together - 1))) + (string.imaginary ? 1 : 0);
    Vector<T> factor;
    for (std::size_t l = 0; l < lanes<T>; ++l) {
      const T value = string.value * sign(l / 2 & z);
      factor[static_cast<int>(l)] = string.imaginary && l % 2 == 0 ? -value : value;
    }
    for (std::size_t k = 0; k < Unroll; ++k) {
      factors[0][k] = factor * sign(k * together & z);
      factors[1][k] = -factors[0][k];
    }
  }
};

template <typename T, int X, int Unroll>
ONEHOP_INLINE void add_exchanged(Vector<T>* sums, const Vector<T>* factors, const T* from, std::size_t near) {
  if constexpr (X < lanes<T>) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < Unroll; ++k) {
      sums[k] = sums[k] + factors[k] * exchange<X>(load(from + ((k * lanes<T>)^near)), LaneNumbers<T>());
    }
  }
}

// Keeps `Unroll` vectors of the result in registers while it adds the strings.
template <typename T, int Unroll>
void signed_add_of(const StringStep<T, Unroll>* strings, std::size_t number, std::complex<T>* out, std::size_t count) {
  constexpr std::size_t step = Unroll * lanes<T> / 2;
  T* const to = reinterpret_cast<T*>(out);
  for (std::size_t j = 0; j < count; j += step) {
    Vector<T> sums[Unroll];
#pragma GCC unroll 8
    for (std::size_t k = 0; k < Unroll; ++k) sums[k] = load(to + 2 * j + k * lanes<T>);
    for (const StringStep<T, Unroll>* s = strings; s != strings + number; ++s) {
      const T* const from = s->from + 2 * (j ^ s->far);
      const Vector<T>* const factors = s->factors[__builtin_popcountll(j & s->z) % 2];
      switch (s->lane) {
#define ONEHOP_CASE(X)                                         \
  case X:                                                      \
    add_exchanged<T, X, Unroll>(sums, factors, from, s->near); \
    break;
        ONEHOP_CASE(0)
        ONEHOP_CASE(1)
        ONEHOP_CASE(2)
        ONEHOP_CASE(3)
        ONEHOP_CASE(4)
        ONEHOP_CASE(5)
        ONEHOP_CASE(6)
        ONEHOP_CASE(7)
        ONEHOP_CASE(8)
        ONEHOP_CASE(9)
        ONEHOP_CASE(10)
        ONEHOP_CASE(11)
        ONEHOP_CASE(12)
        ONEHOP_CASE(13)
        ONEHOP_CASE(14)
        ONEHOP_CASE(15)
#undef ONEHOP_CASE
        default:
          break;
      }
    }
#pragma GCC unroll 8
    for (std::size_t k = 0; k < Unroll; ++k) store(to + 2 * j + k * lanes<T>, sums[k]);
  }
}

template <typename T, int Unroll>
void signed_add_in_turns(const SignedString<T>* strings, std::size_t number, std::complex<T>* out, std::size_t count) {
  constexpr std::size_t most = 8;  // strings at a time, whose factors stay in the first-level cache
  StringStep<T, Unroll> steps[most];
  for (std::size_t done = 0; done < number; done += most) {
    const std::size_t some = number - done < most ? number - done : most;
    for (std::size_t s = 0; s < some; ++s) steps[s].set(strings[done + s]);
    signed_add_of<T, Unroll>(steps, some, out, count);
  }
}

template <typename T>
void signed_add(const SignedString<T>* strings, std::size_t number, std::complex<T>* out, std::size_t count) {
  // Vectors of any instruction set hold 8 amplitudes at most.
  return count >= 64 ? signed_add_in_turns<T, 8>(strings, number, out, count)
                     : signed_add_in_turns<T, 1>(strings, number, out, count);
}

}  // namespace
}  // namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE
