// The walk over the measurement records of a program, with one state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onehop/quantum/program.h"
#include "quantum/simulator/machine.h"
#include "quantum/simulator/shots.h"

namespace onehop::quantum {

// Adds up what the ranks have sent. Collective.
void count_traffic(SimulationResult& result, const StateCounters& counters, const Group& group);

class Walk {
 public:
  // How a program is placed and what its random choices look like.
  enum class Style : std::uint8_t {
    circuit,  // a circuit: placed as a whole, with checkpoints, progress and profile
    program,  // placed in parts; the choices are numbered in the order of the run
  };

  // The split program, the options and the shots, which receive the classical bits, must outlive the walk. `placement`:
  // that of a circuit; nullptr: it is found or made.
  // `first_event`: of the outcomes that are drawn inside.
  Walk(const SplitProgram& split, const Group& group, const ProgramOptions& options, Style style, Shots& shots,
       std::shared_ptr<const Placement> placement = nullptr, std::uint64_t first_event = 0);

  // Runs the program. The result has the outcomes of all shots if this is the last walk that gives bits of them.
  [[nodiscard]] SimulationResult run(bool last = true);
  // The state after the last run.
  [[nodiscard]] std::unique_ptr<State> take_state() { return std::move(state_); }
  [[nodiscard]] const std::vector<bool>& clbits() const { return machine_->clbits(); }

 private:
  [[nodiscard]] PlacementOptions placement_options() const;
  void make_state(const Group& group);
  void place_circuit();
  [[nodiscard]] Profile* profile() { return options_.profile ? &profile_ : nullptr; }
  template <typename Body>
  void timed(ProfileEntry::Kind kind, const Body& body);

  void follow(Branch branch, const CheckpointState* from);
  int choose(Branch& branch, std::span<const double> weights);
  [[nodiscard]] std::vector<int> chosen(const Branch& branch, std::span<const double> weights);
  int take_largest(Branch& branch, const std::vector<int>& indices, std::size_t count);
  int take_first(Branch& branch, std::span<const double> weights);
  void finish(const Branch& branch, Run run);
  void note(const Branch& branch, const std::vector<bool>& clbits);
  [[nodiscard]] std::vector<std::uint64_t> samples(const Branch& branch, std::span<const std::uint64_t> shots);

  void check(const CheckpointState& checkpoint) const;
  void resume(const CheckpointState& checkpoint);
  void keep(Executor& executor, const Branch& branch) const;
  void between(Executor& executor, const Branch& branch);
  [[nodiscard]] std::int64_t open_shots(const Branch& branch) const;

  const SplitProgram& split_;
  const ProgramOptions& options_;
  Style style_;
  std::int64_t trajectories_;
  std::shared_ptr<PlacedCircuit> placed_;
  std::shared_ptr<const Placement> placement_;
  std::int64_t operations_ = 0;
  Shots& shots_;
  std::unique_ptr<State> state_;
  std::vector<Branch> open_;
  std::size_t event_ = 0;  // choices made in the present run
  std::uint64_t first_event_;
  std::unique_ptr<Machine> machine_;
  Branch* present_ = nullptr;
  Run* made_ = nullptr;
  SimulationResult result_;
  Profile profile_;
};

// Draws an index by weights with a number in [0, 1). Never one of weight 0; negative weights, due to rounding, count as
// 0.
[[nodiscard]] int index_of(std::span<const double> weights, double number);

// The gates of a program, and an operation as wide as each of its channels. They decide how many ranks a state needs.
[[nodiscard]] Circuit widest(const Program& program, bool mixed);

// `whole`, or the part of it that shares a state of this circuit; the parts repeat the same run. Throws BadInput unless
// the number of ranks is a power of two. `per_host`: receives the ranks per host of the whole group if it is divided,
// so that all parts place the circuit alike; -1 otherwise. Collective.
[[nodiscard]] Group part_for(const Circuit& circuit, const Group& whole, int& per_host,
                             Precision precision = Precision::double_precision);

}  // namespace onehop::quantum
