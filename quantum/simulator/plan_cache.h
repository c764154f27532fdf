// Circuits that have been planned: whoever runs the same one again finds its placement here, and for small states also the operations of
// each part of a stage, ready to be applied.
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

class PlannedCircuit {
 public:
  explicit PlannedCircuit(Placement placement) : placement_(std::move(placement)) {}
  [[nodiscard]] const Placement& placement() const noexcept { return placement_; }

  // Gates that follow each other in a stage, for a rank whose bits are flipped so before them, and so after them.
  struct Part {
    std::size_t stage = 0, begin = 0;
    std::uint64_t flips = 0, flips_after = 0;
    std::variant<std::monostate, std::unique_ptr<EngineProgram<float>>, std::unique_ptr<EngineProgram<double>>> program;

    EngineCounters run(State& state) const;
  };
  // nullptr: nobody has kept it yet.
  [[nodiscard]] std::shared_ptr<const Part> find(std::size_t stage, std::size_t begin, std::uint64_t flips) const;
  // Makes the program of `operations` for a state such as this one, and keeps it.
  std::shared_ptr<const Part> keep(Part part, std::vector<LocalOperation> operations, const State& state);

 private:
  const Placement placement_;
  mutable std::mutex mutex_;  // ranks may be threads of one process
  std::vector<std::shared_ptr<const Part>> parts_;
};

// The circuit planned for this rank of so many, now or before: the last few circuits are remembered by what is in them. `options.done` must be
// empty. `validate`: also whether the circuit makes sense, if it is a new one.
[[nodiscard]] std::shared_ptr<PlannedCircuit> planned(const Circuit& circuit, int ranks, int rank,
                                                      const PlacementOptions& options, bool validate);
// The same with a circuit that nobody needs any more: its matrices are not there twice.
[[nodiscard]] std::shared_ptr<PlannedCircuit> planned(Circuit&& circuit, int ranks, int rank,
                                                      const PlacementOptions& options);

}  // namespace onehop::quantum
