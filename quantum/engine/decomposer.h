// The class behind `decompose_gates`: it takes the operations of a stage in order and makes items of them.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "quantum/engine/gate_decomposition.h"
#include "quantum/engine/kak.h"

namespace onehop::quantum {

// Sines, cosines and distances from 1 up to this size count as rounding errors.
inline constexpr double negligible = 4e-16;

[[nodiscard]] inline std::uint64_t bit_of(int bit) { return std::uint64_t{1} << bit; }

[[nodiscard]] inline double cosine_of(double tangent) { return 1 / std::sqrt(1 + tangent * tangent); }

// The numbers of a rotation whose angle varies: the factor of amplitudes of even parity, and the sign of the cosine.
[[nodiscard]] inline std::complex<double> even_factor(const LocalOperation& op) {
  return std::polar(1.0, -op.angle / 2);
}
[[nodiscard]] inline double sign_of_cosine(const LocalOperation& op) { return std::cos(op.angle / 2) < 0 ? -1 : 1; }

// The bits on which an operation depends without changing them, and their values where it acts.
struct GateControls {
  std::uint64_t mask = 0;
  std::uint64_t values = 0;
};

class Decomposer {
 public:
  // Arguments are as for `decompose_gates`.
  Decomposer(int bits, int low_bits, int max_mixed, bool matrices, double steepest_varying);

  // Adds the operation with the number `index`.
  void add(const LocalOperation& op, std::uint32_t index);

  // Returns the items of all operations. Nothing may be added afterwards.
  [[nodiscard]] Items finish();

 private:
  using Number = std::complex<double>;

  // A matrix that was decomposed before. No decomposition: the engine keeps it as a matrix.
  struct KnownMatrix {
    std::vector<Number> values;
    std::optional<KakDecomposition> split;
  };

  // --- One-bit gates wait until another operation needs their bit, so that consecutive ones are multiplied ---

  void multiply_waiting(int bit, const Matrix2& m);
  void flush(int bit);
  void flush_all(std::uint64_t mask);

  // --- Matrices (decomposer_matrices.cc) ---

  void add_matrix(const LocalOperation& op, const GateControls& controls, std::uint32_t index);
  // Decomposes m into diag(u0, u1) R diag(1, w), with the rotation R of cosine |m[0]| and sine |m[2]|.
  void one_bit(int bit, const Matrix2& m, const GateControls& controls);
  // Multiplies the gates that wait on the two bits into the matrix.
  void add_two_bits(const LocalOperation& op, std::uint32_t index);
  // Remembers the last few matrices: a circuit tends to repeat a few of them, or none at all.
  [[nodiscard]] const std::optional<KakDecomposition>& split_of(const std::vector<Number>& values);
  void add_split(const KakDecomposition& split, const std::vector<int>& bits);
  void add_dense(const LocalOperation& op, std::uint32_t index);

  // --- Diagonals and phases (decomposer_diagonals.cc) ---

  void add_diagonal(const std::vector<int>& bits, const std::vector<Number>& values, const GateControls& controls,
                    std::uint32_t index);
  // Writes values[v] as a product of factors, one for each subset of the bits that are 1 in v (a Moebius transform).
  void factor_into_phases(const std::vector<int>& bits, std::vector<Number> values, const GateControls& controls);
  void phase_on(std::uint64_t mask, std::uint64_t want, const GateControls& controls, Number factor);
  // Leaves out a factor of 1; `push_any_phase` keeps it.
  void push_phase(const Phase& phase);
  void push_any_phase(const Phase& phase);
  // The items of an operation whose angle varies are the same for every angle.
  void add_varying_phase(const LocalOperation& op, const GateControls& controls, std::uint32_t index);
  void push_varying_phase(Phase phase);

  // --- Rotations about Pauli strings (decomposer_rotations.cc) ---

  void add_rotation(const LocalOperation& op, const GateControls& controls, std::uint32_t index);
  // A rotation about a string of Z alone.
  void add_parity(const LocalOperation& op, const GateControls& controls, std::uint32_t index);
  void add_varying_rotation(const LocalOperation& op, const GateControls& controls, std::uint32_t index);

  // --- Output ---

  [[nodiscard]] bool fits_tile(std::uint64_t mixed) const;
  // Adds the pairs, or the operation itself if its pairs do not fit a tile.
  void pair(const PairOperation& operation, std::uint32_t index);
  void push_pair(const PairOperation& operation);
  void push_butterfly(int bit, double tangent);
  // Adds the derivative by the angle of an operation, if it is asked for.
  void add_probe(const LocalOperation& op, std::uint64_t x_mask, std::uint64_t z_mask);
  // Notes where the next items of an operation that varies are.
  void varying(VaryingItems::Form form, std::uint32_t index);
  void by_operation(ItemKind kind, std::uint64_t mixed, std::uint64_t watched, std::uint32_t index);
  void item(ItemKind kind, std::uint64_t mixed, std::uint64_t watched, std::size_t index);

  bool matrices_;
  std::array<KnownMatrix, 4> known_;
  std::size_t next_known_ = 0;
  int low_bits_;
  std::uint64_t low_mask_;
  int max_mixed_;
  std::vector<std::optional<Matrix2>> waiting_;
  std::vector<std::uint32_t> waiting_gates_;  // the number of gates multiplied into each of them
  std::uint32_t gates_ = 0;                   // the number of gates that count with the next item
  Items items_;
};

}  // namespace onehop::quantum
