// The inner loops of the Wilson operator. Sources that are compiled for one instruction set include this header, so it
// only declares: inline functions could end up with instructions that the processor lacks. Results are on the sites of
// one parity, neighbours on the other; vectors are counted from the first of their parity. Layouts: spinors
// [vector][rhs][spin][colour][re, im][lane], links [vector][neighbour][row][column][re, im][lane] with two or three
// rows, clover blocks [vector][number][lane] (clover.h). With T = float, links may be 16-bit integers in units of 1 /
// short_one, and clover blocks 16-bit integers with a scale per site, [vector][lane].
#pragma once

#include <cstdint>

namespace onehop::lattice {

// A neighbour of a vector of sites. `at` is the number of its vector, within the other parity or, for a ghost, within
// the received face.
struct WilsonNeighbour {
  static constexpr std::uint32_t rotated = 1;  // lanes must be permuted by lane_sources
  static constexpr std::uint32_t ghost = 2;    // a projected half spinor from another rank
  static constexpr std::uint32_t ends = 4;     // across the antiperiodic boundary: multiply by the signs of that side
  std::int32_t at = 0;
  std::uint32_t kind = 0;
};

// How a kernel combines the hopping term h of a site with a spinor `other` of the same site and its clover blocks c.
enum class WilsonForm : std::uint8_t {
  plain,         // factor * h
  add,           // other_factor * other + factor * h
  clover,        // c * (factor * h)
  clover_other,  // c * other + factor * h
};

// The largest 16-bit integer in use; it stands for 1 in links.
inline constexpr double short_one = 32767;

template <class T>
struct WilsonDslash {
  const void* links = nullptr;
  const WilsonNeighbour* neighbours = nullptr;  // 8 per vector: below and above in x, y, z, t
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
  T dagger = 1;  // -1 for the adjoint, which swaps the projectors
  WilsonForm form = WilsonForm::plain;
  bool past_caches = false;  // use non-temporal stores for `out`
  int num_rhs = 1;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t fetched_until = 0;  // prefetch for vectors before this one; 0: no prefetch
};

// Packs a face: out[k] = the half spinor of vectors[k], projected as the rank on the other side of the face needs it.
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

// out = c * in with the clover blocks c; out may be in.
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
  void (*dslash[2])(const WilsonDslash<T>&) = {};       // for links of three and of two rows
  void (*half_dslash[2])(const WilsonDslash<T>&) = {};  // the same for 16-bit links and blocks
  void (*face)(const WilsonFace<T>&) = nullptr;
  void (*blocks)(const WilsonBlocks<T>&) = nullptr;
  void (*short_blocks)(const WilsonBlocks<T>&) = nullptr;
};

// Each returns the kernels of its instruction set for this number of lanes, or null.
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
