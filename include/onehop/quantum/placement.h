// Placement decides which qubits are local to a rank, and when. It divides a circuit into stages. A stage is an
// exchange between ranks (or none) followed by operations that every rank applies to its own amplitudes. Placement is
// pure data and pure functions: it needs no state and no network.
//
// The low bits 0 .. local_bits-1 of an amplitude's position select it inside a rank; the other bits are the rank's
// number. Diagonal factors and controls on bits of the rank's number move no data. Uncontrolled swaps of the circuit
// are resolved by renaming: stages refer to *wires*. Wire w begins as qubit w, and at the end qubit q is wire
// `wires[q]`. docs/design/placement.md describes the heuristic and its quality.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "onehop/quantum/circuit.h"
#include "onehop/quantum/engine.h"

namespace onehop::quantum {

struct PlacementOptions {
  double bytes_per_amplitude = 16;
  // The bit of each wire at the beginning, for a state that exists already. Empty: the state begins as |0...0>; the
  // placement then chooses the bits, and absorbs gates at the beginning of a qubit into the first state.
  std::vector<int> bits = {};
  // For each operation, whether it is done already (when resuming). Empty: none is.
  std::vector<bool> done = {};
  // The approximate time in seconds to search for a placement that moves fewer bytes. 0 uses the heuristic alone. The
  // value is converted to a number of steps, so the result does not depend on the speed of the machine.
  double search_seconds = 1;
  // Ranks on a host, a power of two: ranks 0 .. ranks_per_host - 1 are on the first host, and so on. Wires that are
  // needed soon then get the low bits of the rank's number, whose exchanges stay inside a host. 0: all on one host, or
  // hosts with different numbers of ranks.
  int ranks_per_host = 0;

  // Whether the placement depends on the hosts: only if some ranks share one, but not all of them.
  [[nodiscard]] bool uses_hosts(int ranks) const noexcept { return ranks_per_host > 1 && ranks_per_host < ranks; }
};

struct Stage {
  // The exchange that begins the stage: disjoint pairs (local bit, rank bit). Empty: no exchange.
  std::vector<std::pair<int, int>> swaps;
  std::vector<int> bits;        // the bit of each wire after the exchange
  std::vector<int> operations;  // indices into Placement::operations, in the order of execution
};

// The data that simpler strategies would move, as fractions of a rank's amplitudes, averaged over the ranks.
struct Baselines {
  // Each gate on a rank bit exchanges whole partitions with the partner rank (or swaps the bit down and back).
  double gate_by_gate = 0;
  // Each target on a rank bit is swapped with a local bit before the gate, and back after it.
  double one_swap_at_a_time = 0;
  // Each target on a rank bit is swapped with the least recently used local bit, and not back.
  double lazy_swaps = 0;
};

struct Placement {
  int qubits = 0;
  int ranks = 1;
  int local_bits = 0;
  double bytes_per_amplitude = 16;
  std::vector<Operation> operations;  // the circuit's operations in the same order, on wires
  std::vector<int> wires;             // for each qubit: its wire at the end
  std::vector<int> first_bits;        // the bit of each wire at the beginning
  // The initial one-qubit state of each wire; empty if the state exists already.
  std::vector<std::array<Complex, 2>> first_state;
  std::vector<Stage> stages;
  Baselines baselines;

  [[nodiscard]] int exchanges() const noexcept;
  // The fraction of a rank's amplitudes that it sends in a stage's exchange: 1 - 2^-k for k swaps.
  [[nodiscard]] static double fraction_moved(const Stage& stage) noexcept;
  // The sum over all stages.
  [[nodiscard]] double fraction_moved() const noexcept;
  // The number of bytes that each rank sends in all exchanges.
  [[nodiscard]] std::int64_t bytes_per_rank() const noexcept;
  // These bytes by the outermost border that they cross: inside a unit of units[0] ranks, beyond it but inside a unit
  // of units[1] ranks, ..., beyond all units. Units are powers of two, in ascending order; ranks fill them one after
  // the other. Throws BadInput.
  [[nodiscard]] std::vector<std::int64_t> bytes_by_level(std::span<const int> units) const;
  // The number of bytes for a fraction, such as one of the baselines.
  [[nodiscard]] std::int64_t bytes_per_rank(double fraction) const noexcept;
  // The passes over its amplitudes that the engine on a rank would make in each stage. Throws BadInput for a rank that
  // does not exist.
  [[nodiscard]] std::vector<std::vector<PassSummary>> groups(int rank = 0, bool on_device = false) const;
  // The total number of these passes on rank 0.
  [[nodiscard]] double passes() const;
  // The passes over a file with the amplitudes of one rank, of which memory holds tiles of 2^tile_bits amplitudes.
  [[nodiscard]] int passes_on_disk(int tile_bits, int low_bits) const;
  // A number of exchanges that no placement of these operations can go below, whatever its order of commuting
  // operations and its first layout (unless the state exists already). Not always the largest such number.
  [[nodiscard]] int exchanges_at_least() const;
  // A number of passes on rank 0 that the engine cannot go below with these stages, whatever tiles it chooses.
  [[nodiscard]] double passes_at_least() const;
};

// Computes a placement. Throws BadInput if `ranks` is not a power of two, if there are fewer amplitudes than ranks, or
// if an operation needs more local bits than there are (see `local_bits_needed`). The circuit is not validated; call
// `Circuit::validate` first. The placement takes over the circuit's operations, so move the circuit in if it is no
// longer needed.
[[nodiscard]] Placement place(Circuit circuit, int ranks, const PlacementOptions& options = {});

// The minimum number of local bits with which the circuit can run.
[[nodiscard]] int local_bits_needed(const Circuit& circuit);

// The largest power of two, at most `ranks`, over which the state of this circuit can be distributed.
[[nodiscard]] int usable_ranks(const Circuit& circuit, int ranks);

// Restricts an operation on wires to the local bits of one rank: controls and diagonal factors on bits of the rank's
// number are evaluated. Returns nullopt if this rank has nothing to do. `flips` has a bit set for each rank bit that
// holds the opposite of its wire; a gate X on such a wire only changes `flips`, identically on every rank. The
// operation must be a gate. The caller evaluates its condition and makes every target local that must be; otherwise
// Error is thrown.
[[nodiscard]] std::optional<LocalOperation> localize(const Operation& operation, std::span<const int> bits,
                                                     int local_bits, int rank, std::uint64_t& flips);

}  // namespace onehop::quantum
