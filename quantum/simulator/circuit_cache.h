// A cache of compiled circuits. Running the same circuit again reuses its placement, and for small states also the
// engine programs of its stages.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "onehop/quantum/circuit.h"
#include "onehop/quantum/placement.h"
#include "onehop/quantum/state.h"
#include "quantum/engine/engine_program.h"

namespace onehop::quantum {

// A circuit's placement and the engine programs made for it so far. Safe to use from several threads.
class PlacedCircuit {
 public:
  explicit PlacedCircuit(Placement placement) : placement_(std::move(placement)) {}
  [[nodiscard]] const Placement& placement() const noexcept { return placement_; }

  // Consecutive gates of a stage, compiled for `rank`, whose bits have the flips `flips` before them and `flips_after`
  // after them.
  struct Part {
    int rank = 0;
    std::size_t stage = 0, begin = 0;
    std::uint64_t flips = 0, flips_after = 0;
    std::variant<std::monostate, std::unique_ptr<EngineProgram<float>>, std::unique_ptr<EngineProgram<double>>> program;

    EngineCounters run(State& state) const;
  };
  // Returns the part that begins at operation `begin` of a stage, or nullptr if it has not been compiled yet.
  [[nodiscard]] std::shared_ptr<const Part> find(int rank, std::size_t stage, std::size_t begin,
                                                 std::uint64_t flips) const;
  // Compiles `operations` for the precision and size of `state`, and stores the result.
  std::shared_ptr<const Part> keep(Part part, std::vector<LocalOperation> operations, const State& state);

 private:
  const Placement placement_;
  mutable std::mutex mutex_;  // ranks may be threads of one process
  std::vector<std::shared_ptr<const Part>> parts_;
};

// Returns the compiled circuit, from the cache if an equal circuit was compiled recently or is still held by somebody.
// The placement is the same for all ranks, so ranks that are threads of one process share it. `options.done` must be
// empty. `validate`: validate a circuit that is not in the cache.
[[nodiscard]] std::shared_ptr<PlacedCircuit> compile_cached(const Circuit& circuit, int ranks,
                                                            const PlacementOptions& options, bool validate);
// The same for a circuit that the caller no longer needs: its matrices are moved, not copied.
[[nodiscard]] std::shared_ptr<PlacedCircuit> compile_cached(Circuit&& circuit, int ranks,
                                                            const PlacementOptions& options);

// The placement of a compiled circuit, which it keeps alive.
[[nodiscard]] std::shared_ptr<const Placement> placement_of(const std::shared_ptr<PlacedCircuit>& compiled);

// Returns the placement of an equal circuit if the cache has it, else a new one, which the cache does not get: for
// circuits that may be planned but are not repeated.
[[nodiscard]] std::shared_ptr<const Placement> find_or_place(const Circuit& circuit, int ranks,
                                                             const PlacementOptions& options);

// Options for a circuit that continues with this state.
[[nodiscard]] PlacementOptions placement_options(const State& state);

// Applies the gates of a placement, which may be matrices that are not unitary. Collective.
void apply_placed(State& state, const Placement& placement);

// Counts of this process so far.
struct CircuitCacheCounters {
  std::int64_t placed = 0;  // circuits that were placed and entered
  std::int64_t found = 0;   // circuits whose placement was found
};
[[nodiscard]] CircuitCacheCounters circuit_cache_counters();

}  // namespace onehop::quantum
