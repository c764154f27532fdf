// The loops over a tile, one set per instruction set, chosen at run time. kernels_simd.h has the only source, in the
// compiler's vector types; each kernels_*.cc compiles it for one instruction set.
//
// A tile holds 2^bits amplitudes in vectors of 2^lane_bits real parts followed by as many imaginary parts. 2^row_bits
// amplitudes form a row. Gaps between rows keep amplitudes at power-of-two distances from competing for the same few
// cache sets.
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
  std::size_t row_gap = 0;  // in numbers of type T, like row_stride(), numbers() and place()
  // Kernels work on the vectors v with (v & part_mask) == part only; those that go through rows take no such mask. A
  // kernel that mixes or watches bits of the vector number needs a mask without these bits.
  std::size_t part_mask = 0;
  std::size_t part = 0;

  [[nodiscard]] std::size_t rows() const { return std::size_t{1} << (bits - row_bits); }
  [[nodiscard]] std::size_t row_stride() const { return (std::size_t{2} << row_bits) + row_gap; }
  [[nodiscard]] std::size_t numbers() const { return rows() * row_stride(); }
  // The offset of vector `v`. Additive: place(v | w) = place(v) + place(w) if v and w have no common bits.
  [[nodiscard]] std::size_t place(std::size_t v) const {
    return (v << (lane_bits + 1)) + (v >> (row_bits - lane_bits)) * row_gap;
  }
};

// A PairOperation on a tile. Masks are in bits of the tile's vector number.
template <typename T>
struct PairStep {
  std::size_t partner = 0;    // vector v pairs with vector v ^ partner; 0: pairs are inside a vector
  unsigned lane_partner = 0;  // lane l pairs with lane l ^ lane_partner of the partner
  std::size_t top = 0;        // the top bit of partner
  std::size_t sign = 0;       // the parity of v & sign chooses the coefficients
  std::size_t controls = 0;   // only vectors v with (v & controls) == control_values; no bit of partner
  std::size_t control_values = 0;
  // [parity][4][lane]: first' = c0 first + c1 second, second' = c2 second + c3 first, where `first` is the vector
  // without bit `top`.
  std::vector<T> coefficients;
};

// A matrix on bits of the vector number.
template <typename T>
struct DenseStep {
  std::vector<int> bits;  // bits[0] is the least significant bit of the matrix index
  std::size_t controls = 0;
  std::size_t control_values = 0;
  std::vector<std::complex<T>> matrix;
  // If not 0: of a butterfly on each of two bits, the first one first; `matrix` is then the diagonal between them.
  T tangents[2] = {};
};

// A permutation of a tile's amplitudes whose index map is affine in the bits of the index (any number of X, CX and SWAP
// gates): the amplitude at index i comes from index sources[vector number of i] ^ lane_sources[lane of i] ^ flip.
struct PermutationStep {
  std::vector<std::uint32_t> sources;
  std::vector<std::uint32_t> lane_sources;

  // If every vector has lanes of four other vectors or more, 2^rank vectors that come from the same 2^rank vectors are
  // permuted together (quantum/engine/permutation_groups.h). Otherwise rank is 0.
  int rank = 0;
  std::size_t group_mask = 0;          // the bits of the vector number that distinguish the vectors of a group
  std::vector<std::uint32_t> inputs;   // XORed to the number of the source vector of the group's first vector
  std::vector<std::uint32_t> outputs;  // XORed to the number of the group's first vector
  // `rank` stages with a vector of lane numbers for each vector of the group: in stage k, lane l of vector i is lane
  // stages[k][i][l] of the concatenation of the two vectors whose numbers are i, but for bit k, from before the stage.
  std::vector<std::uint32_t> stages;
};

// A matrix on two bits, one or both of which are lane bits: `lane_mask`. If only one is, `bit` is the other one's
// position in the vector number. coefficients[to][from][lanes exchanged][re, im][lane] holds the matrix elements: from
// each of the one or two vectors, and each of the two or four combinations of exchanged lane bits.
template <typename T>
struct LaneMatrixStep {
  unsigned lane_mask = 0;
  int bit = -1;
  std::vector<T> coefficients;
};

// Two pairs at once, on bits of the vector number. For bits[0] and bits[1], matrix[0][0] mixes 00 with 11 and
// matrix[0][1] mixes 01 with 10 (row-major; first the amplitude whose higher bit is 0). For bits[2] and bits[3],
// matrix[1] does.
template <typename T>
struct TwoPairsStep {
  int bits[4] = {};
  T matrix[2][2][4] = {};
};

// Products of two tiles with a Pauli string between them, for derivatives. Masks are in bits of the vector number.
struct ProbeStep {
  std::size_t partner = 0;    // vector v of the bra meets vector v ^ partner of the ket
  unsigned lane_partner = 0;  // and lane l meets lane l ^ lane_partner
  std::size_t sign = 0;       // products are negated where the parity of v & sign is odd
  std::size_t controls = 0;   // only vectors v with (v & controls) == control_values
  std::size_t control_values = 0;
  bool imaginary = false;  // the imaginary parts of conj(bra) ket; otherwise the real parts
};

// A Pauli string with a weight: adds (-1)^parity(j & z) factor in[j ^ x] to amplitude j, where factor is `value`, or i
// `value` if `imaginary`.
template <typename T>
struct SignedString {
  const std::complex<T>* in = nullptr;
  std::size_t x = 0;
  std::size_t z = 0;
  T value = 0;
  bool imaginary = false;
};

template <typename T>
struct Kernels {
  int lane_bits;
  // Whether a general two-bit gate is faster as a dense matrix than decomposed (measured: docs/design/engine.md).
  bool prefer_dense;

  // Copy rows between the amplitudes and a tile; row r is at amplitudes + offsets[r]. scatter() multiplies by `scale`.
  // `past_caches`: use non-temporal stores, for states that no cache holds. `following`: the number of further offsets
  // after those of the shape, whose rows are gathered next and therefore prefetched.
  void (*gather)(const std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape, T* tile,
                 std::size_t following);
  void (*scatter)(std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape, const T* tile,
                  T scale, bool past_caches);
  // scatter() with a permutation of the tile's amplitudes.
  void (*scatter_permuted)(std::complex<T>* amplitudes, const std::uint64_t* offsets, const TileShape& shape,
                           const T* tile, const PermutationStep& step, std::uint32_t flip, T scale, bool past_caches);

  // a' = a - t b, b' = b + t a, on `count` (1 to 4) bits of the vector number.
  void (*butterflies)(T* tile, const TileShape& shape, const int* bits, const T* tangents, int count);
  // The same for all lane bits (tangent 0: no rotation). First, amplitudes are negated once per bit of `signs` that
  // is set in their lane.
  void (*lane_butterflies)(T* tile, const TileShape& shape, const T* tangents, unsigned signs);

  void (*pair)(T* tile, const TileShape& shape, const PairStep<T>& step, bool odd);
  void (*two_pairs)(T* tile, const TileShape& shape, const TwoPairsStep<T>& step);
  void (*dense)(T* tile, const TileShape& shape, const DenseStep<T>& step);
  // Permutes a tile's amplitudes into another tile.
  void (*permute)(const T* from, T* to, const TileShape& shape, const PermutationStep& step, std::uint32_t flip);
  void (*lane_matrix)(T* tile, const TileShape& shape, const LaneMatrixStep<T>& step);

  // row *= table * factor, with the table in the layout of a row; and row *= factor.
  void (*multiply)(T* row, const T* table, std::complex<T> factor, std::size_t vectors);
  void (*scale)(T* row, std::complex<T> factor, std::size_t vectors);

  // multiply() for the same row of two states; and probe_row() before it.
  void (*multiply_both)(T* ket, T* bra, const T* table, std::complex<T> factor, std::size_t vectors);
  double (*probe_and_multiply)(T* ket, T* bra, const T* table, std::complex<T> factor, std::size_t vectors, T* columns);

  // Derivatives, with `ket` and `bra` tiles of the same shape. probe_row adds Im(conj(bra) ket) of each amplitude of a
  // row to `columns` and returns their sum. probe_vectors writes for each of `count` (1 to 3) bits b of the vector
  // number the sum over pairs of amplitudes (0 and 1 at the bit) of Re(conj(bra_1) ket_0 - conj(bra_0) ket_1), and
  // probe_lanes the same for every lane bit. probe_pairs writes for each lane the sum of the products of a ProbeStep.
  double (*probe_row)(const T* ket, const T* bra, std::size_t vectors, T* columns);
  void (*probe_vectors)(const T* ket, const T* bra, const TileShape& shape, const int* bits, int count, double* out);
  void (*probe_lanes)(const T* ket, const T* bra, const TileShape& shape, double* out);
  void (*probe_pairs)(const T* ket, const T* bra, const TileShape& shape, const ProbeStep& step, double* out);
  // probe_vectors() and then butterflies() of both states in one sweep, on 1 to `max_probed_turns` bits. And the same
  // for lane bits.
  int max_probed_turns;
  void (*probed_butterflies)(T* ket, T* bra, const TileShape& shape, const int* bits, const T* tangents, int count,
                             double* out);
  void (*probed_lane_butterflies)(T* ket, T* bra, const TileShape& shape, const T* tangents, unsigned signs,
                                  double* out);

  // The sum over j < count of (-1)^parity(j & z) conj(left[j ^ x]) right[j], in double precision. `count`: a power of
  // two, at least 8; x and z must be below it.
  std::complex<double> (*signed_product)(const std::complex<T>* left, const std::complex<T>* right, std::size_t count,
                                         std::size_t x, std::size_t z);
  // Adds `number` strings, one after the other, to out[j] for j < count. `count`, x and z as above.
  void (*signed_add)(const SignedString<T>* strings, std::size_t number, std::complex<T>* out, std::size_t count);
};

// The kernels for cpu::level(): the best instruction set of this processor, or the one that ONEHOP_SIMD names.
template <typename T>
const Kernels<T>& kernels();

// The instruction sets that this processor supports: "portable" and perhaps "avx2" and "avx512".
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
