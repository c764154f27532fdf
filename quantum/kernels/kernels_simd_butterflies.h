// The kernels that rotate, and how all kernels go through groups of vectors. Included by kernels_simd.h.
namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE {
namespace {

// --- Butterflies: real rotations, so that real and imaginary parts are independent ---

// The vectors of a tile, or of a part of it, in groups that differ in `bits` of the vector number.
template <int Count>
class VectorGroups {
 public:
  static constexpr int size = 1 << Count;

  // Only vectors v with (v & controls) == control_values.
  VectorGroups(const TileShape& shape, const int* bits, std::size_t controls = 0, std::size_t control_values = 0)
      : shape_(shape), fixed_(controls | shape.part_mask), first_(control_values | shape.part) {
    for (int j = 0; j < size; ++j) {
      std::size_t v = 0;
      for (int b = 0; b < Count; ++b) v |= static_cast<std::size_t>(j >> b & 1) << bits[b];
      offsets[j] = shape.place(v);
      fixed_ |= v;
    }
  }

  // Calls body(v) with the first vector of every group.
  template <typename Body>
  ONEHOP_INLINE void each(const Body& body) const {
    const std::size_t count = std::size_t{1} << (shape_.bits - shape_.lane_bits - __builtin_popcountll(fixed_));
    const std::size_t fixed = fixed_;
    std::size_t v = 0;
    for (std::size_t g = 0; g < count; ++g, v = ((v | fixed) + 1) & ~fixed) body(v | first_);
  }

  std::size_t offsets[size];  // of the vectors of a group from its first one

 private:
  const TileShape& shape_;
  std::size_t fixed_;
  std::size_t first_;
};

template <typename T, int Size>
ONEHOP_INLINE void load_group(Vector<T>* x, const T* from, const std::size_t* offsets) {
#pragma GCC unroll 16
  for (int j = 0; j < Size; ++j) x[j] = load_once(from + offsets[j]);
}

template <typename T, int Size>
ONEHOP_INLINE void store_group(const Vector<T>* x, T* to, const std::size_t* offsets) {
#pragma GCC unroll 16
  for (int j = 0; j < Size; ++j) store(to + offsets[j], x[j]);
}

template <typename T, int Count>
ONEHOP_INLINE void turn_vectors(Vector<T>* x, const Vector<T>* tangents) {
#pragma GCC unroll 4
  for (int b = 0; b < Count; ++b) {
#pragma GCC unroll 16
    for (int j = 0; j < 1 << Count; ++j) {
      if ((j >> b & 1) != 0) continue;
      const Vector<T> first = x[j];
      const Vector<T> second = x[j | 1 << b];
      x[j] = first - tangents[b] * second;
      x[j | 1 << b] = second + tangents[b] * first;
    }
  }
}

template <typename T, int Count>
void butterflies_of(T* tile, const TileShape& shape, const int* bits, const T* tangents) {
  const VectorGroups<Count> groups(shape, bits);
  Vector<T> t[Count];
  for (int b = 0; b < Count; ++b) t[b] = all<T>(tangents[b]);
  groups.each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    T* part = tile + shape.place(v);
    for (int half = 0; half < 2; ++half, part += lanes<T>) {
      Vector<T> x[groups.size];
      load_group<T, groups.size>(x, part, groups.offsets);
      turn_vectors<T, Count>(x, t);
      store_group<T, groups.size>(x, part, groups.offsets);
    }
  });
}

template <typename T>
void butterflies(T* tile, const TileShape& shape, const int* bits, const T* tangents, int count) {
  switch (count) {
    case 1:
      return butterflies_of<T, 1>(tile, shape, bits, tangents);
    case 2:
      return butterflies_of<T, 2>(tile, shape, bits, tangents);
    case 3:
      return butterflies_of<T, 3>(tile, shape, bits, tangents);
    default:
      return butterflies_of<T, 4>(tile, shape, bits, tangents);
  }
}

template <typename T, int Bit>
ONEHOP_INLINE Vector<T> lane_butterfly(Vector<T> v, const Vector<T>* signed_tangents) {
  if constexpr (Bit < lane_bits<T>) {
    v = v + signed_tangents[Bit] * exchange<(1 << Bit)>(v, LaneNumbers<T>());
    return lane_butterfly<T, Bit + 1>(v, signed_tangents);
  } else {
    return v;
  }
}

template <typename T, typename Each>
ONEHOP_INLINE void for_each_vector(T* tile, const TileShape& shape, const Each& each) {
  const std::size_t numbers = std::size_t{2} << shape.row_bits;
  for (std::size_t r = 0; r < shape.rows(); ++r) {
    T* row = tile + r * shape.row_stride();
    for (std::size_t i = 0; i < numbers; i += lanes<T>) store(row + i, each(load(row + i)));
  }
}

// The tangents of lane bits, negated where the bit is 0, and a sign for each bit of `signs` that is set in the lane.
template <typename T>
struct LaneTurns {
  LaneTurns(const T* tangents, unsigned signs) {
    for (int l = 0; l < lanes<T>; ++l) {
      sign[l] = __builtin_popcount(static_cast<unsigned>(l) & signs) % 2 != 0 ? T(-1) : T(1);
      for (int b = 0; b < lane_bits<T>; ++b) signed_tangents[b][l] = (l >> b & 1) != 0 ? tangents[b] : -tangents[b];
    }
  }
  Vector<T> sign;
  Vector<T> signed_tangents[lane_bits<T>];
};

template <typename T>
void lane_butterflies(T* tile, const TileShape& shape, const T* tangents, unsigned signs) {
  const LaneTurns<T> turns(tangents, signs);
  const Vector<T> sign = turns.sign;
  int count = 0;
  int bit = 0;
  for (int b = 0; b < lane_bits<T>; ++b) {
    if (tangents[b] == 0) continue;
    ++count;
    bit = b;
  }
  if (count == 1) {
    Vector<T> other;
    for (int l = 0; l < lanes<T>; ++l) other[l] = turns.signed_tangents[bit][l] * sign[l ^ (1 << bit)];
    return with_number<lane_bits<T>>(static_cast<std::size_t>(bit), [&]<int Bit>() {
      for_each_vector(tile, shape, [&](Vector<T> v) ONEHOP_INLINE_LAMBDA {
        return sign * v + other * exchange<(1 << Bit)>(v, LaneNumbers<T>());
      });
    });
  }
  if (signs == 0) {
    for_each_vector(tile, shape,
                    [&](Vector<T> v) ONEHOP_INLINE_LAMBDA { return lane_butterfly<T, 0>(v, turns.signed_tangents); });
  } else {
    for_each_vector(tile, shape, [&](Vector<T> v) ONEHOP_INLINE_LAMBDA {
      return lane_butterfly<T, 0>(v * sign, turns.signed_tangents);
    });
  }
}

}  // namespace
}  // namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE
