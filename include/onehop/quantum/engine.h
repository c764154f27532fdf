// The engine applies gates to the amplitudes of one rank between two exchanges. It knows only bits of a local index,
// and nothing of qubits, ranks or messages. quantum/placement converts every operation to local bits, with controls and
// diagonal factors on rank bits already evaluated, and hands over all operations up to the next exchange at once, so
// that the engine can group them into passes.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace onehop::quantum {

enum class LocalKind : std::uint8_t {
  matrix,          // values: 4^k numbers, row-major; bits[0] is the least significant bit of the matrix index
  diagonal,        // values: 2^k numbers; k = 0: one factor for all amplitudes whose controls hold
  swap,            // exchanges two bits
  pauli_rotation,  // exp(-i angle/2 P), with P given by x_mask and z_mask
};

struct LocalOperation {
  LocalKind kind = LocalKind::matrix;
  std::vector<int> bits = {};        // local bits, distinct
  std::uint64_t control_mask = 0;    // local bits that are controls
  std::uint64_t control_values = 0;  // the values that they must have (a subset of control_mask)
  std::vector<std::complex<double>> values = {};
  // The Pauli string P of a pauli_rotation. A bit set in x_mask only is X, in z_mask only Z, in both Y. Both masks
  // cover local bits only; `angle` already has the sign that Z on rank bits gives.
  std::uint64_t x_mask = 0;
  std::uint64_t z_mask = 0;
  double angle = 0;
  int source = -1;  // the index of the operation in the circuit, for profiles; -1: none
  // Whether the angle depends on parameters: the operation then takes the same form for every angle. It is a
  // pauli_rotation with `angle` = weight times the angle of the operation in the circuit, or a diagonal without bits,
  // whose value is exp(i weight angle).
  bool varies = false;
  double weight = 1;
  int probe = -1;  // with `apply_to_both`: the index of the derivative by the angle; -1: none
};

// Gives an operation with `varies` the angle that its operation in the circuit has now.
void set_angle(LocalOperation& operation, double angle);

// The contents of one pass of `apply`.
struct PassSummary {
  std::vector<int> tile_bits;  // the index bits within a tile; empty: one operation applied directly in memory
  int gates = 0;               // operations, each counted in the pass that does its first part
  int rotations = 0;           // real rotations of one bit
  int pairs = 0;               // other 2x2 operations on pairs of amplitudes: with controls, or on several bits
  int matrices = 0;
  int phases = 0;            // diagonal factors, before they merge
  int tables = 0;            // diagonals that do not merge
  int sweeps = 0;            // sweeps over a tile that do all of the above
  double multiply_adds = 0;  // real multiply-adds per amplitude
};

// The parts of a pass that are timed.
enum class PassPart : std::uint8_t { preparing, gather, rotations, pairs, matrices, diagonals, scatter };
inline constexpr std::size_t pass_parts = 7;
[[nodiscard]] const char* name_of(PassPart part);

// A timed pass of `apply`.
struct PassRecord {
  PassSummary pass = {};
  double begin = 0;  // in seconds on the steady clock
  double seconds = 0;
  std::array<double, pass_parts> parts = {};  // seconds by PassPart; all 0 for an operation applied directly in memory
};

struct EngineOptions {
  // 0: the value of ONEHOP_THREADS, or as many as the affinity mask of the calling thread allows. Ranks that share a
  // machine without being bound to parts of it must each pass their share.
  int threads = 0;
  // Receives a record of each pass of `apply`; nullptr: nothing is timed.
  std::vector<PassRecord>* records = nullptr;
};

// Statistics of a call. A pass reads and writes the whole local state once.
struct EngineCounters {
  double passes = 0;
  double disk_passes = 0;  // over the file of a state on disk; `passes` then go over the tiles in memory
  std::int64_t operations = 0;
  double seconds = 0;
  double planning_seconds = 0;  // the part of `seconds` spent on grouping operations into passes
  double multiply_adds = 0;     // of `apply_to_both`: real multiply-adds per amplitude of one state
  // Adds passes, operations and seconds.
  void add(const EngineCounters& more) {
    passes += more.passes;
    disk_passes += more.disk_passes;
    operations += more.operations;
    seconds += more.seconds;
  }
};

// Applies the operations in order to amplitudes[0 .. 2^bits). T: float or double. Throws BadInput if the number of
// amplitudes is not a power of two or an operation names a bit that is not there.
template <typename T>
EngineCounters apply(std::span<std::complex<T>> amplitudes, std::span<const LocalOperation> operations,
                     const EngineOptions& options = {});

extern template EngineCounters apply<float>(std::span<std::complex<float>>, std::span<const LocalOperation>,
                                            const EngineOptions&);
extern template EngineCounters apply<double>(std::span<std::complex<double>>, std::span<const LocalOperation>,
                                             const EngineOptions&);

// Applies the operations to two states at once, and computes derivatives on the way. For each operation with a probe,
// derivatives[probe] grows by weight * Im <bra| Q P |ket> for a rotation about P, and by -2 weight Im <bra| Q |ket> for
// a phase, where Q projects on its controls. If `bra` is H `ket` for Hermitian H just before the inverse of an
// operation is applied, this is the derivative of <H> by the operation's angle. Every pass loads a tile of both states,
// and computes while both are in the cache. Throws BadInput as `apply` does.
template <typename T>
EngineCounters apply_to_both(std::span<std::complex<T>> ket, std::span<std::complex<T>> bra,
                             std::span<const LocalOperation> operations, std::span<double> derivatives,
                             const EngineOptions& options = {});

// The number of passes that `apply` would make. Needs no amplitudes.
[[nodiscard]] double count_passes(int bits, std::span<const LocalOperation> operations, int bytes_per_amplitude);

// A number of passes that no choice of tiles can go below, with the engine's decomposition of these operations.
[[nodiscard]] double count_passes_at_least(int bits, std::span<const LocalOperation> operations,
                                           int bytes_per_amplitude);

// The passes that `apply` would make, in order, or those of the engine for devices.
[[nodiscard]] std::vector<PassSummary> summarize_passes(int bits, std::span<const LocalOperation> operations,
                                                        int bytes_per_amplitude, bool on_device = false);

// Measures the time in seconds to read and write every amplitude once, the best of a few attempts: a lower bound for
// the cost of a pass. The amplitudes are negated an even number of times.
template <typename T>
[[nodiscard]] double pass_seconds(std::span<std::complex<T>> amplitudes, const EngineOptions& options = {});

// Reductions. All of them sum in a fixed order that does not depend on the number of threads.

// The sum of |a|^2.
template <typename T>
[[nodiscard]] double norm_squared(std::span<const std::complex<T>> amplitudes, const EngineOptions& options = {});

// Writes to `out` the probabilities (sums of |a|^2) of the 2^k values of k local bits, bits[0] least significant. k is
// at most 24.
template <typename T>
void probabilities(std::span<const std::complex<T>> amplitudes, std::span<const int> bits, std::span<double> out,
                   const EngineOptions& options = {});

// Writes to `out` <a| P |b> for each Pauli string P over local bits, in as few passes as possible: strings with equal
// x_mask share a pass.
struct LocalPauli {
  std::uint64_t x_mask = 0;
  std::uint64_t z_mask = 0;
};
template <typename T>
void pauli_products(std::span<const std::complex<T>> a, std::span<const std::complex<T>> b,
                    std::span<const LocalPauli> paulis, std::span<std::complex<double>> out,
                    const EngineOptions& options = {});

// Adds coefficients[k] P_k |in> to `out` for each Pauli string P_k over local bits. `in` and `out` must not overlap.
template <typename T>
void add_paulis(std::span<const std::complex<T>> in, std::span<const LocalPauli> paulis,
                std::span<const std::complex<double>> coefficients, std::span<std::complex<T>> out,
                const EngineOptions& options = {});

// <a|b>.
template <typename T>
[[nodiscard]] std::complex<double> inner_product(std::span<const std::complex<T>> a, std::span<const std::complex<T>> b,
                                                 const EngineOptions& options = {});

// Multiplies the amplitudes whose `bit` has `value` by `factor` and sets the others to zero (the collapse of a
// measurement).
template <typename T>
void collapse(std::span<std::complex<T>> amplitudes, int bit, int value, double factor,
              const EngineOptions& options = {});

// Samples indices. `thresholds` are ascending numbers in [0, norm_squared). out[i] is the smallest index j such that
// the sum of |a|^2 up to and including j exceeds thresholds[i]; its amplitude is never zero. Reads the amplitudes once
// and copies nothing.
template <typename T>
void sample(std::span<const std::complex<T>> amplitudes, std::span<const double> thresholds,
            std::span<std::uint64_t> out, const EngineOptions& options = {});

}  // namespace onehop::quantum
