// The loops over a tile, one set per kind of vector instructions, chosen at run time. One source, kernels_simd.h, in
// the compiler's vector types, compiled once per kind by kernels_*.cc: that needs no further package, and the inner
// loops are plain enough not to miss one.
//
// A tile holds 2^bits amplitudes in vectors of 2^lane_bits real parts followed by as many imaginary parts. 2^row_bits
// amplitudes are a row; between rows lies a gap, so that amplitudes at distances of powers of two do not fall into the
// same few sets of the cache.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace onehop::quantum {

struct TileShape {
  int bits = 0;
  int lane_bits = 0;
  int row_bits = 0;         // at least lane_bits
  std::size_t row_gap = 0;  // numbers

  [[nodiscard]] std::size_t rows() const { return std::size_t{1} << (bits - row_bits); }
  [[nodiscard]] std::size_t row_stride() const { return (std::size_t{2} << row_bits) + row_gap; }  // numbers
  [[nodiscard]] std::size_t numbers() const { return rows() * row_stride(); }
  // Where vector `v` begins. Additive over vectors whose bits are disjoint.
  [[nodiscard]] std::size_t place(std::size_t v) const {
    return (v << (lane_bits + 1)) + (v >> (row_bits - lane_bits)) * row_gap;
  }
};

// A PairOperation on a tile: masks in bits of the tile's vector number.
template <typename T>
struct PairStep {
  std::size_t partner = 0;         // vector v meets vector v ^ partner; 0: all happens inside a vector
  unsigned lane_partner = 0;       // lane l meets lane l ^ lane_partner of the partner
  std::size_t top = 0;             // the top bit of partner
  std::size_t sign = 0;            // the parity of v & sign chooses the coefficients
  std::size_t controls = 0;        // vectors that ...
  std::size_t control_values = 0;  // ... have these values; no bit of partner
  // [parity][which][lane]: first' = c0 first + c1 second, second' = c2 second + c3 first (first: the vector without bit
  // `top`)
  std::vector<T> coefficients;
};

// A matrix on bits of the vector number.
template <typename T>
struct DenseStep {
  std::vector<int> bits;  // bits[0] the least significant of the matrix's index
  std::size_t controls = 0;
  std::size_t control_values = 0;
  std::vector<std::complex<T>> matrix;
};

// A permutation of a tile's amplitudes whose index map is affine in the bits of the index (any number of X, CX and SWAP
// gates): the amplitude at index i comes from index sources[vector number of i] ^ lane_sources[lane of i] ^ flip.
struct PermutationStep {
  std::vector<std::uint32_t> sources;
  std::vector<std::uint32_t> lane_sources;
};

// A matrix on two bits of which one or both are inside a vector: `lane_mask` says which lanes meet. With one, `bit` is
// the other's place in the vector number. For each way of coming from one of the (one or two) vectors and one of the
// (two or four) lanes, the real and then the imaginary parts of what each lane is multiplied by:
// coefficients[to][from][lanes exchanged][re, im][lane].
template <typename T>
struct LaneMatrixStep {
  unsigned lane_mask = 0;
  int bit = -1;
  std::vector<T> coefficients;
};

// Two pairs at once, on bits of the vector number: bits 0 and 1 of the list turn 00 with 11 by matrix[0][0] and 01 with
// 10 by matrix[0][1] (as in PairOperation: row-major, the one whose second bit is 0 first), bits 2 and 3 by matrix[1].
template <typename T>
struct TwoPairsStep {
  int bits[4] = {};
  T matrix[2][2][4] = {};
};

template <typename T>
struct Kernels {
  int lane_bits;
  // Whether a general two-bit gate is faster as a dense matrix than decomposed (measured: docs/design/engine.md).
  bool prefer_dense;

  // amplitudes + offsets[r] is where row r lies. `scatter` multiplies by `scale`; `past_caches`: with stores that do
  // not read what they overwrite, for states that no cache holds. `following`: so many offsets come after those of the
  // shape, for rows that will be gathered next.
  void (*gather)(const std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape, T* tile,
                 std::size_t following);
  void (*scatter)(std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape, const T* tile,
                  T scale, bool past_caches);
  // The same with a permutation of the tile's amplitudes.
  void (*scatter_permuted)(std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape,
                           const T* tile, const PermutationStep& step, std::uint32_t flip, T scale, bool past_caches);

  // a' = a - t b, b' = b + t a, on `count` (1 to 4) bits of the vector number.
  void (*butterflies)(T* tile, const TileShape& shape, const int* bits, const T* tangents, int count);
  // The same inside vectors, for every lane bit (tangent 0: none). Before, amplitudes change their sign for each bit of
  // `signs` that is set in their lane.
  void (*lane_butterflies)(T* tile, const TileShape& shape, const T* tangents, unsigned signs);

  void (*pair)(T* tile, const TileShape& shape, const PairStep<T>& step, bool odd);
  void (*two_pairs)(T* tile, const TileShape& shape, const TwoPairsStep<T>& step);
  void (*dense)(T* tile, const TileShape& shape, const DenseStep<T>& step);
  // Permutes a tile's amplitudes into another tile.
  void (*permute)(const T* from, T* to, const TileShape& shape, const PermutationStep& step, std::uint32_t flip);
  void (*lane_matrix)(T* tile, const TileShape& shape, const LaneMatrixStep<T>& step);

  // A row times a table of a row's form, times a factor.
  void (*multiply)(T* row, const T* table, std::complex<T> factor, std::size_t vectors);
  void (*scale)(T* row, std::complex<T> factor, std::size_t vectors);

  // The sum over j < count of conj(left[j ^ x]) right[j], negated where an odd number of the bits of j & z is set, in
  // double precision. `count`: a power of two, at least 8; x and z below it.
  std::complex<double> (*signed_product)(const std::complex<T>* left, const std::complex<T>* right, std::size_t count,
                                         std::size_t x, std::size_t z);
};

// The best that this processor can, or the one named by ONEHOP_SIMD.
template <typename T>
const Kernels<T>& kernels();

// The names that this processor can: "portable" and perhaps "avx2", "avx512".
[[nodiscard]] std::vector<std::string> simd_names();

// Throws BadInput for a name that is not in simd_names().
template <typename T>
const Kernels<T>& kernels_named(const std::string& name);

namespace portable {
const Kernels<float>& float_kernels();
const Kernels<double>& double_kernels();
}  // namespace portable
#if defined(__x86_64__)
namespace avx2 {
const Kernels<float>& float_kernels();
const Kernels<double>& double_kernels();
}  // namespace avx2
namespace avx512 {
const Kernels<float>& float_kernels();
const Kernels<double>& double_kernels();
}  // namespace avx512
#endif

}  // namespace onehop::quantum
