// The kernels that permute amplitudes, into another tile or during the scatter. Included by kernels_simd.h.
namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE {
namespace {

template <typename T>
struct LaneIndex;
template <>
struct LaneIndex<float> {
  typedef std::int32_t Number;
  typedef simd::Vector<Number, lanes<float>> Vector;
};
template <>
struct LaneIndex<double> {
  typedef std::int64_t Number;
  typedef simd::Vector<Number, lanes<double>> Vector;
};

// Lane l of the result is lane which[l] of the concatenation of a and b.
template <typename T>
ONEHOP_INLINE Vector<T> picked(Vector<T> a, Vector<T> b, typename LaneIndex<T>::Vector which) {
#if defined(__clang__)
  Vector<T> v;
  for (int l = 0; l < lanes<T>; ++l) v[l] = which[l] < lanes<T> ? a[which[l]] : b[which[l] - lanes<T>];
  return v;
#else
  return __builtin_shuffle(a, b, which);
#endif
}

// How the lanes of a result vector come from a few source vectors. For each of these: the value that is XORed to the
// vector number, and for every lane of the result the source lane, if it is taken from this vector.
template <typename T>
struct Mixing {
  typedef typename LaneIndex<T>::Number Lane;
  typedef typename LaneIndex<T>::Vector Lanes;

  Mixing(const PermutationStep& step, std::uint32_t flip) {
    constexpr std::uint32_t lane_mask = static_cast<std::uint32_t>(lanes<T> - 1);
    for (int l = 0; l < lanes<T>; ++l) {
      const std::uint32_t source = step.lane_sources[static_cast<std::size_t>(l)] ^ flip;
      const std::uint32_t shift = source >> lane_bits<T>;
      int k = 0;
      while (k < count && shifts[k] != shift) ++k;
      if (k == count) {
        shifts[count++] = shift;
        for (int i = 0; i < lanes<T>; ++i) {
          which[k][i] = static_cast<Lane>(i);
          taken[k][i] = 0;
        }
      }
      which[k][l] = static_cast<Lane>(lanes<T>) + static_cast<Lane>(source & lane_mask);
      taken[k][l] = static_cast<Lane>(lane_mask);
      of_two[l] = static_cast<Lane>(source & lane_mask) + static_cast<Lane>(k * lanes<T>);
    }
  }

  int count = 0;
  std::uint32_t shifts[lanes<T>];
  Lanes which[lanes<T>];
  Lanes taken[lanes<T>];  // a mask of the lane number in `which`, for lanes that are taken from this vector
  Lanes of_two;           // with at most two sources: the lane in their concatenation
};

// Count: the number of source vectors per result vector; 0: any number. Sink: takes the vectors of real and imaginary
// parts.
template <typename T, int Count, typename Sink>
ONEHOP_INLINE void permuted_row(const T* from, const TileShape& shape, const PermutationStep& step,
                                const Mixing<T>& mixing, const Sink& sink) {
  typedef typename LaneIndex<T>::Number Lane;
  constexpr std::uint32_t lane_mask = static_cast<std::uint32_t>(lanes<T> - 1);
  VectorGroups<0>(shape, nullptr).each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    const std::uint32_t source = step.sources[v] >> lane_bits<T>;
    const auto lane = static_cast<Lane>(step.sources[v] & lane_mask);
    if constexpr (Count == 0) {
      Vector<T> re = {};
      Vector<T> im = {};
      for (int k = 0; k < mixing.count; ++k) {
        const T* const vector = from + shape.place(source ^ mixing.shifts[k]);
        const typename LaneIndex<T>::Vector lanes_taken = mixing.which[k] ^ (mixing.taken[k] & lane);
        re = picked<T>(re, load(vector), lanes_taken);
        im = picked<T>(im, load(vector + lanes<T>), lanes_taken);
      }
      sink(v, re, im);
    } else {
      const typename LaneIndex<T>::Vector lanes_taken = mixing.of_two ^ lane;
      const T* const first = from + shape.place(source ^ mixing.shifts[0]);
      const T* const second = Count == 1 ? first : from + shape.place(source ^ mixing.shifts[1]);
      sink(v, picked<T>(load(first), load(second), lanes_taken),
           picked<T>(load(first + lanes<T>), load(second + lanes<T>), lanes_taken));
    }
  });
}

// Groups of 2^Rank vectors (quantum/engine/permutation_groups.h). The sink gets them in any order.
template <typename T, int Rank, typename Sink>
void permuted_groups(const T* from, const TileShape& shape, const PermutationStep& step, std::uint32_t flip,
                     const Sink& sink) {
  typedef typename LaneIndex<T>::Number Lane;
  typedef typename LaneIndex<T>::Vector Lanes;
  constexpr int size = 1 << Rank;
  Lanes stages[Rank][size];
  const std::uint32_t* next = step.stages.data();
  for (auto& stage : stages) {
    for (Lanes& which : stage) {
      for (int l = 0; l < lanes<T>; ++l) which[l] = static_cast<Lane>(*next++);
    }
  }
  // The bits of the group are fixed at 0.
  VectorGroups<0>(shape, nullptr, step.group_mask).each([&](std::size_t v) ONEHOP_INLINE_LAMBDA {
    const std::uint32_t source = step.sources[v] ^ flip;
    const auto lane = static_cast<Lane>(source & static_cast<std::uint32_t>(lanes<T> - 1));
    Vector<T> results[2][size];
    for (int half = 0; half < 2; ++half) {
      Vector<T> old[size];
#pragma GCC unroll 16
      for (int j = 0; j < size; ++j) {
        const std::size_t number = (source >> lane_bits<T>)^step.inputs[static_cast<std::size_t>(j)];
        old[j] = load(from + shape.place(number) + half * lanes<T>);
      }
#pragma GCC unroll 4
      for (int k = 0; k < Rank; ++k) {
        Vector<T> mixed[size];
#pragma GCC unroll 16
        for (int i = 0; i < size; ++i) {
          const Lanes which = k == 0 ? stages[k][i] ^ lane : stages[k][i];
          mixed[i] = picked<T>(old[i & ~(1 << k)], old[i | 1 << k], which);
        }
#pragma GCC unroll 16
        for (int i = 0; i < size; ++i) old[i] = mixed[i];
      }
#pragma GCC unroll 16
      for (int i = 0; i < size; ++i) results[half][i] = old[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < size; ++i) {
      sink(v ^ step.outputs[static_cast<std::size_t>(i)], results[0][i], results[1][i]);
    }
  });
}

template <typename T, typename Sink>
ONEHOP_INLINE void permute_into(const T* from, const TileShape& shape, const PermutationStep& step, std::uint32_t flip,
                                const Sink& sink) {
  if constexpr (lane_bits<T> >= 2) {
    if (step.rank == 2) return permuted_groups<T, 2>(from, shape, step, flip, sink);
  }
  if constexpr (lane_bits<T> >= 3) {
    if (step.rank == 3) return permuted_groups<T, 3>(from, shape, step, flip, sink);
  }
  if constexpr (lane_bits<T> >= 4) {
    if (step.rank == 4) return permuted_groups<T, 4>(from, shape, step, flip, sink);
  }
  const Mixing<T> mixing(step, flip);
  if (mixing.count == 1) {
    permuted_row<T, 1>(from, shape, step, mixing, sink);
  } else if (mixing.count == 2) {
    permuted_row<T, 2>(from, shape, step, mixing, sink);
  } else {
    permuted_row<T, 0>(from, shape, step, mixing, sink);
  }
}

template <typename T>
void permute(const T* from, T* to, const TileShape& shape, const PermutationStep& step, std::uint32_t flip) {
  permute_into(from, shape, step, flip, [&](std::size_t v, Vector<T> re, Vector<T> im) ONEHOP_INLINE_LAMBDA {
    T* const out = to + shape.place(v);
    store(out, re);
    store(out + lanes<T>, im);
  });
}

template <bool Stream, typename T>
ONEHOP_INLINE void scatter_permuted_with(std::complex<T>* amplitudes, const std::uint64_t* offsets,
                                         const TileShape& shape, const T* tile, const PermutationStep& step,
                                         std::uint32_t flip, T scale) {
  const Vector<T> factor = all<T>(scale);
  const int in_row = shape.row_bits - shape.lane_bits;
  permute_into(tile, shape, step, flip, [&](std::size_t v, Vector<T> re, Vector<T> im) ONEHOP_INLINE_LAMBDA {
    const std::size_t column = (v & ((std::size_t{1} << in_row) - 1)) << shape.lane_bits;
    put<Stream>(reinterpret_cast<T*>(amplitudes + offsets[v >> in_row] + column), re * factor, im * factor);
  });
}

template <typename T>
void scatter_permuted(std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape, const T* tile,
                      const PermutationStep& step, std::uint32_t flip, T scale, bool past_caches) {
  if (past_caches && can_stream(amplitudes)) {
    scatter_permuted_with<true>(amplitudes, offsets, shape, tile, step, flip, scale);
    finish_streaming();
  } else {
    scatter_permuted_with<false>(amplitudes, offsets, shape, tile, step, flip, scale);
  }
}

}  // namespace
}  // namespace onehop::quantum::ONEHOP_SIMD_NAMESPACE
