// The kernels that multiply by matrices. Included in the middle of kernels_simd.h, after the helpers that they use.
namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE {
namespace {

// --- Pairs ---

template <typename T, int LanePartner>
void pair_of(T* tile, const TileShape& shape, const PairStep<T>& step, bool odd) {
  Vector<T> c[2][4];
  for (int p = 0; p < 2; ++p) {
    for (int k = 0; k < 4; ++k) c[p][k] = load(step.coefficients.data() + (p * 4 + k) * lanes<T>);
  }
  // `top` is fixed at 0.
  VectorGroups<0>(shape, nullptr, step.controls | step.top, step.control_values)
      .each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
        const int p = (__builtin_popcountll(v & step.sign) & 1) ^ static_cast<int>(odd);
        T* first = tile + shape.place(v);
        if (step.partner == 0) {
          for (int half = 0; half < 2; ++half, first += lanes<T>) {
            const Vector<T> a = load(first);
            store(first, c[p][0] * a + c[p][1] * exchange<LanePartner>(a, LaneNumbers<T>()));
          }
          return;
        }
        T* second = tile + shape.place(v ^ step.partner);
        for (int half = 0; half < 2; ++half, first += lanes<T>, second += lanes<T>) {
          const Vector<T> a = load(first);
          const Vector<T> b = load(second);
          store(first, c[p][0] * a + c[p][1] * exchange<LanePartner>(b, LaneNumbers<T>()));
          store(second, c[p][2] * b + c[p][3] * exchange<LanePartner>(a, LaneNumbers<T>()));
        }
      });
}

template <typename T>
void pair(T* tile, const TileShape& shape, const PairStep<T>& step, bool odd) {
  with_number<lanes<T>>(step.lane_partner, [&]<int LanePartner>() { pair_of<T, LanePartner>(tile, shape, step, odd); });
}

template <typename T>
ONEHOP_INLINE void turn(Vector<T>& first, Vector<T>& second, const T* m) {
  const Vector<T> a = first;
  first = m[0] * a + m[1] * second;
  second = m[3] * second + m[2] * a;
}

template <typename T>
void two_pairs(T* tile, const TileShape& shape, const TwoPairsStep<T>& step) {
  const VectorGroups<4> groups(shape, step.bits);
  groups.each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    T* part = tile + shape.place(v);
    for (int half = 0; half < 2; ++half, part += lanes<T>) {
      Vector<T> x[16];
      load_group<T, 16>(x, part, groups.offsets);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        turn(x[4 * k], x[4 * k + 3], step.matrix[0][0]);
        turn(x[4 * k + 1], x[4 * k + 2], step.matrix[0][1]);
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        turn(x[k], x[k + 12], step.matrix[1][0]);
        turn(x[k + 4], x[k + 8], step.matrix[1][1]);
      }
      store_group<T, 16>(x, part, groups.offsets);
    }
  });
}

// --- Matrices ---

template <typename T, int Count>
void dense_of(T* tile, const TileShape& shape, const DenseStep<T>& step) {
  constexpr int size = 1 << Count;
  const VectorGroups<Count> groups(shape, step.bits.data(), step.controls, step.control_values);
  const std::size_t* const offsets = groups.offsets;
  const T* const matrix = reinterpret_cast<const T*>(step.matrix.data());
  groups.each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    T* const group = tile + shape.place(v);
    Vector<T> re[size];
    Vector<T> im[size];
#pragma GCC unroll 8
    for (int j = 0; j < size; ++j) {
      re[j] = load_once(group + offsets[j]);
      im[j] = load_once(group + offsets[j] + lanes<T>);
    }
    const T* m = matrix;
    for (int r = 0; r < size; ++r, m += 2 * size) {
      Vector<T> sum_re = m[0] * re[0];
      Vector<T> sum_im = m[0] * im[0];
      Vector<T> more_re = m[1] * im[0];
      Vector<T> more_im = m[1] * re[0];
#pragma GCC unroll 8
      for (std::ptrdiff_t c = 1; c < size; ++c) {
        sum_re = sum_re + m[2 * c] * re[c];
        sum_im = sum_im + m[2 * c] * im[c];
        more_re = more_re + m[2 * c + 1] * im[c];
        more_im = more_im + m[2 * c + 1] * re[c];
      }
      store(group + offsets[r], sum_re - more_re);
      store(group + offsets[r] + lanes<T>, sum_im + more_im);
    }
  });
}

// Two butterflies with a factor of each amplitude between them.
template <typename T>
void joined_butterflies(T* tile, const TileShape& shape, const DenseStep<T>& step) {
  const VectorGroups<2> groups(shape, step.bits.data());
  const std::complex<T>* const factors = step.matrix.data();
  const Vector<T> tangents[2] = {all<T>(step.tangents[0]), all<T>(step.tangents[1])};
  const auto turn = [](Vector<T>& first, Vector<T>& second, Vector<T> tangent) ONEHOP_INLINE_LAMBDA {
    const Vector<T> before = first;
    first = first - tangent * second;
    second = second + tangent * before;
  };
  groups.each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    T* const group = tile + shape.place(v);
    Vector<T> re[4];
    Vector<T> im[4];
    load_group<T, 4>(re, group, groups.offsets);
    load_group<T, 4>(im, group + lanes<T>, groups.offsets);
    for (Vector<T>* x : {re, im}) {
      turn(x[0], x[1], tangents[0]);
      turn(x[2], x[3], tangents[0]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const Vector<T> before = re[j];
      re[j] = factors[j].real() * before - factors[j].imag() * im[j];
      im[j] = factors[j].real() * im[j] + factors[j].imag() * before;
    }
    for (Vector<T>* x : {re, im}) {
      turn(x[0], x[2], tangents[1]);
      turn(x[1], x[3], tangents[1]);
    }
    store_group<T, 4>(re, group, groups.offsets);
    store_group<T, 4>(im, group + lanes<T>, groups.offsets);
  });
}

template <typename T>
void dense(T* tile, const TileShape& shape, const DenseStep<T>& step) {
  if (step.tangents[0] != 0) return joined_butterflies(tile, shape, step);
  switch (step.bits.size()) {
    case 1:
      return dense_of<T, 1>(tile, shape, step);
    case 2:
      return dense_of<T, 2>(tile, shape, step);
    case 3:
      return dense_of<T, 3>(tile, shape, step);
    case 4:
      return dense_of<T, 4>(tile, shape, step);
    default:
      return dense_of<T, 5>(tile, shape, step);
  }
}

// A matrix on the lane bit `Lane` and one bit of the vector number.
template <typename T, int Lane>
void lane_matrix_one(T* tile, const TileShape& shape, const LaneMatrixStep<T>& step) {
  const VectorGroups<1> groups(shape, &step.bit);
  const std::size_t other = groups.offsets[1];
  Vector<T> c[2][2][2][2];  // [to][from][exchanged][re, im]
  const T* coefficients = step.coefficients.data();
  for (int k = 0; k < 16; ++k, coefficients += lanes<T>) c[k >> 3][k >> 2 & 1][k >> 1 & 1][k & 1] = load(coefficients);
  groups.each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    T* const first = tile + shape.place(v);
    Vector<T> re[2][2];
    Vector<T> im[2][2];
#pragma GCC unroll 2
    for (int from = 0; from < 2; ++from) {
      re[from][0] = load_once(first + (from == 0 ? 0 : other));
      im[from][0] = load_once(first + (from == 0 ? 0 : other) + lanes<T>);
      re[from][1] = exchange<Lane>(re[from][0], LaneNumbers<T>());
      im[from][1] = exchange<Lane>(im[from][0], LaneNumbers<T>());
    }
#pragma GCC unroll 2
    for (int to = 0; to < 2; ++to) {
      Vector<T> sum_re = c[to][0][0][0] * re[0][0];
      Vector<T> sum_im = c[to][0][0][0] * im[0][0];
      Vector<T> more_re = c[to][0][0][1] * im[0][0];
      Vector<T> more_im = c[to][0][0][1] * re[0][0];
#pragma GCC unroll 3
      for (int k = 1; k < 4; ++k) {
        const int from = k >> 1;
        const int s = k & 1;
        sum_re = sum_re + c[to][from][s][0] * re[from][s];
        sum_im = sum_im + c[to][from][s][0] * im[from][s];
        more_re = more_re + c[to][from][s][1] * im[from][s];
        more_im = more_im + c[to][from][s][1] * re[from][s];
      }
      store(first + (to == 0 ? 0 : other), sum_re - more_re);
      store(first + (to == 0 ? 0 : other) + lanes<T>, sum_im + more_im);
    }
  });
}

// A matrix on the lane bits `Low` and `High`.
template <typename T, int Low, int High>
void lane_matrix_two(T* tile, const TileShape& shape, const LaneMatrixStep<T>& step) {
  const std::size_t vectors = std::size_t{1} << (shape.row_bits - shape.lane_bits);
  Vector<T> c[4][2];
  for (int k = 0; k < 8; ++k) c[k >> 1][k & 1] = load(step.coefficients.data() + k * lanes<T>);
  for (std::size_t r = 0; r < shape.rows(); ++r) {
    T* part = tile + r * shape.row_stride();
    for (std::size_t i = 0; i < vectors; ++i, part += 2 * lanes<T>) {
      Vector<T> re[4];
      Vector<T> im[4];
      re[0] = load(part);
      im[0] = load(part + lanes<T>);
      re[1] = exchange<Low>(re[0], LaneNumbers<T>());
      im[1] = exchange<Low>(im[0], LaneNumbers<T>());
      re[2] = exchange<High>(re[0], LaneNumbers<T>());
      im[2] = exchange<High>(im[0], LaneNumbers<T>());
      re[3] = exchange<(Low | High)>(re[0], LaneNumbers<T>());
      im[3] = exchange<(Low | High)>(im[0], LaneNumbers<T>());
      Vector<T> sum_re = c[0][0] * re[0];
      Vector<T> sum_im = c[0][0] * im[0];
      Vector<T> more_re = c[0][1] * im[0];
      Vector<T> more_im = c[0][1] * re[0];
#pragma GCC unroll 3
      for (int s = 1; s < 4; ++s) {
        sum_re = sum_re + c[s][0] * re[s];
        sum_im = sum_im + c[s][0] * im[s];
        more_re = more_re + c[s][1] * im[s];
        more_im = more_im + c[s][1] * re[s];
      }
      store(part, sum_re - more_re);
      store(part + lanes<T>, sum_im + more_im);
    }
  }
}

template <typename T, int Mask>
void lane_matrix_from(T* tile, const TileShape& shape, const LaneMatrixStep<T>& step) {
  if constexpr (Mask < lanes<T>) {
    if (step.lane_mask == Mask) {
      if constexpr ((Mask & (Mask - 1)) == 0) {
        return lane_matrix_one<T, Mask>(tile, shape, step);
      } else if constexpr ((Mask & (Mask - 1) & ((Mask & (Mask - 1)) - 1)) == 0) {
        return lane_matrix_two<T, (Mask & -Mask), (Mask & (Mask - 1))>(tile, shape, step);
      }
    }
    lane_matrix_from<T, Mask + 1>(tile, shape, step);
  }
}

template <typename T>
void lane_matrix(T* tile, const TileShape& shape, const LaneMatrixStep<T>& step) {
  lane_matrix_from<T, 1>(tile, shape, step);
}

}  // namespace
}  // namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE
