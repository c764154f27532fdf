// Placement: which qubits are local when. A circuit and a number of ranks become stages: an exchange between ranks (or none), then
// operations that every rank can do on its own amplitudes. Pure data and pure functions: no state, no network.
//
// Bits of an amplitude's place: 0 .. local_bits-1 select it inside a rank, the others are the rank's number. Diagonal factors and controls
// on bits of the rank number move nothing. Swaps of the circuit are bookkeeping: they are gone from the stages, which speak of *wires*;
// wire w begins as qubit w, and at the end qubit q is wire `wires[q]`. docs/design/placement.md states the rule and how good it is.
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
  int bytes_per_amplitude = 16;
  // Where each wire lies when the circuit begins, for a state that exists already; empty: the state begins as |0...0>, so that the
  // placement may choose, and write gates that stand alone at the beginning of a qubit into the first state.
  std::vector<int> bits;
  // For each operation whether it has been done already (a restart); empty: none.
  std::vector<bool> done;
  // How hard to look for fewer bytes, about in seconds; 0: the rule alone. The result does not depend on the machine's speed.
  double effort = 1;
};

struct Stage {
  std::vector<std::pair<int, int>> swaps;  // the exchange before it: disjoint (local bit, bit of the rank); empty: none
  std::vector<int> bits;                   // where each wire lies after the exchange
  std::vector<int> operations;             // of Placement::operations, in the order of execution
};

// What the circuit would move by other rules, as fractions of a rank's amplitudes, the average over the ranks.
struct Baselines {
  double gate_by_gate =
      0;  // each gate on a bit of the rank exchanges whole partitions with the partner (or swaps down and back)
  double one_swap_at_a_time = 0;  // every such target is swapped down by itself, and back after the gate
  double lazy_swaps = 0;          // swapped down by itself when needed, never back; the least recently used goes out
};

struct Placement {
  int qubits = 0;
  int ranks = 1;
  int local_bits = 0;
  int bytes_per_amplitude = 16;
  std::vector<Operation> operations;  // on wires; same numbers as the circuit's operations
  std::vector<int> wires;             // the wire that is qubit q at the end
  std::vector<int> first_bits;        // where each wire lies at the beginning
  std::vector<std::array<Complex, 2>>
      first_state;  // of each wire, where the placement chose it; empty: the state exists already
  std::vector<Stage> stages;
  Baselines baselines;

  [[nodiscard]] int exchanges() const noexcept;
  // Fraction of a rank's amplitudes that leave it in a stage's exchange: 1 - 2^-(number of swaps).
  [[nodiscard]] static double fraction_moved(const Stage& stage) noexcept;
  [[nodiscard]] double fraction_moved() const noexcept;
  [[nodiscard]] std::int64_t bytes_per_rank() const noexcept;
  // The same for a fraction of one of the baselines.
  [[nodiscard]] std::int64_t bytes_per_rank(double fraction) const noexcept;
  // How the engine would group the operations of each stage, on rank 0: a pass over its amplitudes each.
  [[nodiscard]] std::vector<std::vector<PassSummary>> groups() const;
  // The number of these.
  [[nodiscard]] double passes() const;
};

// Throws BadInput: ranks no power of two, fewer amplitudes than ranks, or an operation with more targets than there are local bits
// (`local_bits_needed`). The circuit is taken as it is; `Circuit::validate` is the caller's. Its operations become the placement's: whoever
// does not need it any more moves it here.
[[nodiscard]] Placement place(Circuit circuit, int ranks, const PlacementOptions& options = {});

// The fewest local bits with which the circuit can run.
[[nodiscard]] int local_bits_needed(const Circuit& circuit);

// The largest power of two, at most `ranks`, over which a state for this circuit can be split.
[[nodiscard]] int usable_ranks(const Circuit& circuit, int ranks);

// One operation on wires for one rank, whose amplitudes are bits 0 .. local_bits-1: controls and diagonal factors on bits of the rank's
// number decided. `flips` has a bit set for each bit of the rank's number that holds the opposite of its wire: a gate X on such a wire only
// changes `flips`, the same way on every rank. Nothing comes back where there is nothing to do.
// The operation is a gate (its condition is the caller's to decide), all its targets that need it are local.
[[nodiscard]] std::optional<LocalOperation> resolve(const Operation& operation, std::span<const int> bits,
                                                    int local_bits, int rank, std::uint64_t& flips);

}  // namespace onehop::quantum
