// The engine: gates on the amplitudes of one rank, between two exchanges. It knows bits of a local index, nothing of qubits, ranks or
// messages: quantum/placement has turned every operation into one on local bits (controls and diagonal factors on bits of the rank number
// are already decided), and hands over everything up to the next exchange at once, so that the engine may group it into passes.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace onehop::quantum {

enum class LocalKind : std::uint8_t {
  matrix,          // values: 4^k, row-major; bits[0] is the least significant bit of the matrix's index
  diagonal,        // values: 2^k; k = 0: one number, a factor (of the amplitudes whose controls fit)
  swap,            // of two bits
  pauli_rotation,  // exp(-i angle/2 P) with X, Y masks over local bits; see z_mask, x_mask
};

struct LocalOperation {
  LocalKind kind = LocalKind::matrix;
  std::vector<int> bits = {};        // local bits, distinct
  std::uint64_t control_mask = 0;    // local bits that must have ...
  std::uint64_t control_values = 0;  // ... these values (a subset of control_mask)
  std::vector<std::complex<double>> values = {};
  // pauli_rotation: P = i^(number of Y) * X-part * Z-part as Pauli strings: bit set in x_mask only: X, in z_mask only: Z, in both: Y.
  // No bits beyond the local ones; `angle` already has the sign that bits of the rank number give.
  std::uint64_t x_mask = 0;
  std::uint64_t z_mask = 0;
  double angle = 0;
  int source = -1;  // which operation of the circuit it came from, for profiles
};

// A pass that `apply` would make: what goes into it.
struct PassSummary {
  std::vector<int> tile_bits;  // the bits of an index that run within a tile; none: one operation straight in memory
  int gates = 0;               // operations, each counted in the pass where the first part of it is done
  int rotations = 0;           // of one bit
  int pairs = 0;               // of two amplitudes otherwise: with controls, or of several bits
  int matrices = 0;
  int phases = 0;            // diagonal factors, before they merge
  int tables = 0;            // diagonals that do not merge
  int sweeps = 0;            // over a tile: what all of these have become
  double multiply_adds = 0;  // of real numbers, for each amplitude
};

// Where the time of a pass goes.
enum class PassPart : std::uint8_t { preparing, gather, rotations, pairs, matrices, diagonals, scatter };
inline constexpr std::size_t pass_parts = 7;
[[nodiscard]] const char* name_of(PassPart part);

// A pass that `apply` has made.
struct PassRecord {
  PassSummary pass = {};
  double begin = 0;  // in seconds of the steady clock
  double seconds = 0;
  std::array<double, pass_parts> parts = {};  // of `seconds`, by PassPart; nothing for an operation straight in memory
};

struct EngineOptions {
  // 0: ONEHOP_THREADS, or as many as the affinity mask of the calling thread allows. Ranks that share a machine without being bound
  // to parts of it must give each its share.
  int threads = 0;
  // Where `apply` writes down each pass; nullptr: nothing is timed.
  std::vector<PassRecord>* records = nullptr;
};

// What a call did: a pass reads and writes the whole local state once.
struct EngineCounters {
  double passes = 0;
  std::int64_t operations = 0;
  double seconds = 0;
  double planning_seconds = 0;  // of these, until it was clear what goes into which pass
};

// Applies the operations in order to amplitudes[0 .. 2^bits). T: float or double. Throws BadInput if the number of amplitudes is not a
// power of two or an operation names a bit that is not there.
template <typename T>
EngineCounters apply(std::span<std::complex<T>> amplitudes, std::span<const LocalOperation> operations,
                     const EngineOptions& options = {});

extern template EngineCounters apply<float>(std::span<std::complex<float>>, std::span<const LocalOperation>,
                                            const EngineOptions&);
extern template EngineCounters apply<double>(std::span<std::complex<double>>, std::span<const LocalOperation>,
                                             const EngineOptions&);

// How many passes `apply` would make: the same grouping, no amplitudes.
[[nodiscard]] double count_passes(int bits, std::span<const LocalOperation> operations, int bytes_per_amplitude);

// The passes that `apply` would make, one after the other.
[[nodiscard]] std::vector<PassSummary> summarize_passes(int bits, std::span<const LocalOperation> operations,
                                                        int bytes_per_amplitude);

// How long reading and writing every amplitude once takes on this many threads, in seconds, the best of a few: what a pass can cost at
// least. The amplitudes are negated an even number of times.
template <typename T>
[[nodiscard]] double pass_seconds(std::span<std::complex<T>> amplitudes, const EngineOptions& options = {});

// Reductions. All sum in a fixed order that does not depend on the number of threads.

// Sum of |a|^2.
template <typename T>
[[nodiscard]] double norm_squared(std::span<const std::complex<T>> amplitudes, const EngineOptions& options = {});

// Probabilities of the 2^k values of the given local bits (bits[0] least significant), k at most 24: sums of |a|^2, into `out` of 2^k numbers.
template <typename T>
void probabilities(std::span<const std::complex<T>> amplitudes, std::span<const int> bits, std::span<double> out,
                   const EngineOptions& options = {});

// <a| P |b> of many Pauli strings over local bits in as few passes as possible (strings of equal x_mask share one): into `out`, one each.
struct LocalPauli {
  std::uint64_t x_mask = 0;
  std::uint64_t z_mask = 0;
};
template <typename T>
void pauli_products(std::span<const std::complex<T>> a, std::span<const std::complex<T>> b,
                    std::span<const LocalPauli> paulis, std::span<std::complex<double>> out,
                    const EngineOptions& options = {});

// <a|b>.
template <typename T>
[[nodiscard]] std::complex<double> inner_product(std::span<const std::complex<T>> a, std::span<const std::complex<T>> b,
                                                 const EngineOptions& options = {});

// Keeps the amplitudes whose `bit` has `value`, times `factor`, and sets the others to zero (a measurement's collapse).
template <typename T>
void collapse(std::span<std::complex<T>> amplitudes, int bit, int value, double factor,
              const EngineOptions& options = {});

// Sampling: `thresholds` ascending numbers in [0, norm_squared); out[i] = the smallest index j such that the sum of |a|^2 up to and
// including j exceeds thresholds[i], never one whose amplitude is zero. One pass that reads, no copy.
template <typename T>
void sample(std::span<const std::complex<T>> amplitudes, std::span<const double> thresholds,
            std::span<std::uint64_t> out, const EngineOptions& options = {});

}  // namespace onehop::quantum
