// The inner loops of the Wilson operator. This header is included where the compiler may use instructions that not every processor has:
// it declares only. Everything is of sites of one parity, whose neighbours are of the other: vectors are counted from the first of their
// colour. Spinors lie as [vector][rhs][spin][colour][re, im][lane], links as [vector][neighbour][row][column][re, im][lane] with two
// or three rows, blocks of the clover term as [vector][number][lane] (clover.h). With T = float both may be 16-bit integers: links in
// units of 1 / short_one, blocks with a scale for every site, [vector][lane].
#pragma once

#include <cstdint>

namespace onehop::lattice {

// A neighbour of a vector of sites. `at` counts the vectors of the other parity, or, of a ghost, those of its message.
struct WilsonNeighbour {
  static constexpr std::uint32_t rotated = 1;  // its lanes are those of lane_sources
  static constexpr std::uint32_t ghost = 2;    // a projected half spinor from another rank
  static constexpr std::uint32_t ends =
      4;  // the way there crosses the end of the lattice: times the signs of that side
  std::int32_t at = 0;
  std::uint32_t kind = 0;
};

// What becomes of the hopping term h of a site, beside a spinor `other` of the same site and the clover blocks c.
enum class WilsonForm : std::uint8_t {
  plain,         // factor * h
  add,           // other_factor * other + factor * h
  clover,        // c * (factor * h)
  clover_other,  // c * other + factor * h
};

// The largest 16-bit integer that is used.
inline constexpr double short_one = 32767;

template <class T>
struct WilsonDslash {
  const void* links = nullptr;
  const WilsonNeighbour* neighbours = nullptr;  // 8 a vector: below and above in x, y, z, t
  const int* lane_sources = nullptr;            // [neighbour][lane]
  const T* signs = nullptr;                     // [neighbour][lane]
  const T* in = nullptr;
  const T* ghosts[8] = {};
  T* out = nullptr;
  const T* other = nullptr;
  const void* clover = nullptr;
  const T* clover_scales = nullptr;
  T factor = 1;
  T other_factor = 1;
  T dagger = 1;  // -1: the adjoint, in which the projectors change places
  WilsonForm form = WilsonForm::plain;
  bool past_caches = false;  // stores of `out`
  int num_rhs = 1;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t fetched_until = 0;  // what vectors before this one read is asked for some vectors ahead
};

// The projected half spinors of these vectors, as the neighbour on the other side of `neighbour` wants them: of a face above (odd numbers) the
// rank above takes what is below it.
template <class T>
struct WilsonFace {
  const std::int32_t* vectors = nullptr;
  const T* in = nullptr;
  T* out = nullptr;
  T dagger = 1;
  int side = 0;  // 2 * direction, + 1 for the face above
  int num_rhs = 1;
  bool past_caches = false;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// out = c * in, the clover blocks alone; out may be in.
template <class T>
struct WilsonBlocks {
  const void* clover = nullptr;
  const T* clover_scales = nullptr;
  const T* in = nullptr;
  T* out = nullptr;
  int num_rhs = 1;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

template <class T>
struct WilsonKernels {
  int lanes = 0;
  void (*dslash[2])(const WilsonDslash<T>&) = {};       // with links of three rows, of two
  void (*half_dslash[2])(const WilsonDslash<T>&) = {};  // the same with 16-bit links and blocks
  void (*face)(const WilsonFace<T>&) = nullptr;
  void (*blocks)(const WilsonBlocks<T>&) = nullptr;
  void (*short_blocks)(const WilsonBlocks<T>&) = nullptr;
};

// Those for so many lanes in this source, or null.
#define ONEHOP_WILSON_KERNELS                                        \
  [[nodiscard]] const WilsonKernels<float>* float_wilson(int lanes); \
  [[nodiscard]] const WilsonKernels<double>* double_wilson(int lanes);
namespace portable {
ONEHOP_WILSON_KERNELS
}
#if defined(__x86_64__)
namespace avx2 {
ONEHOP_WILSON_KERNELS
}
namespace avx512 {
ONEHOP_WILSON_KERNELS
}
#endif
#undef ONEHOP_WILSON_KERNELS

}  // namespace onehop::lattice
