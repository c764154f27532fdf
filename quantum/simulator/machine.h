// Runs a program on one state, a vector or a density matrix. Random choices are the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "onehop/quantum/program.h"
#include "quantum/simulator/circuit_cache.h"
#include "quantum/simulator/kraus.h"

namespace onehop::quantum {

class Machine {
 public:
  struct Calls {
    // Chooses an index by weights.
    std::function<int(std::span<const double> weights)> choose;
    // Takes the saved data of this number.
    std::function<void(int save, std::vector<Complex> values)> save = {};
    // Called between the steps of a placement.
    std::function<void(Executor&)> between = {};
  };
  struct Setup {
    bool mixed = false;
    double search_seconds = 1;  // for the placement of the parts
    Profile* profile = nullptr;
    // The placement of the whole program, which is then a circuit and begins as |0...0>; nullptr: the program is placed
    // in parts on the state as it is.
    std::shared_ptr<const Placement> whole = nullptr;
    PlacedCircuit* compiled = nullptr;  // the gates compiled for `whole`, if they may be used
  };

  // All arguments must outlive the machine.
  Machine(const Program& program, State& state, Calls calls, Setup setup);

  // Runs the program on the state. Returns false if postselection ends the run. Collective.
  bool run();
  // Runs the rest of a circuit with this placement, from these classical bits.
  void run_rest(const Placement& rest, std::vector<bool> clbits);

  [[nodiscard]] const std::vector<bool>& clbits() const noexcept { return clbits_; }
  // Of the engine, in all runs.
  [[nodiscard]] const EngineCounters& counters() const noexcept { return counters_; }

 private:
  [[nodiscard]] std::size_t operation(std::size_t place);
  bool other(const Operation& operation, std::size_t& place);
  void run_part(std::size_t begin, std::size_t end);
  void run_placed(const Placement& placement, std::span<const Operation> source, PlacedCircuit* compiled);
  void on_matrix(const Operation& operation);
  void queue(Operation operation);
  void settle();
  void flush();
  [[nodiscard]] Executor::Drawn draw(const Operation& operation, int target, double one);
  void channel(const Operation& operation);
  void misread(const Operation& operation);
  void set_state(const Operation& operation);
  [[nodiscard]] std::vector<Complex> amplitudes(std::vector<std::uint64_t> values,
                                                const std::vector<int>& targets) const;
  [[nodiscard]] std::vector<Complex> weights(const std::vector<std::uint64_t>& values,
                                             const std::vector<int>& targets) const;
  [[nodiscard]] std::vector<Complex> saved(const Operation& operation) const;
  [[nodiscard]] PlacementOptions placement_here() const;
  [[nodiscard]] Circuit empty_circuit() const;

  const Program& program_;
  State& state_;
  Calls calls_;
  Setup setup_;
  std::vector<KrausOperators> channels_;  // of a state vector
  std::map<int, std::size_t> marks_;
  bool queues_;  // gates wait for channels to be drawn; otherwise whole parts are placed
  std::map<std::pair<std::size_t, std::vector<int>>, std::shared_ptr<PlacedCircuit>> parts_;
  std::vector<Operation> queue_;
  bool unsettled_ = false;  // whether the queue writes classical bits
  std::int64_t turns_ = 0;
  std::vector<bool> clbits_;
  EngineCounters counters_;
};

}  // namespace onehop::quantum
