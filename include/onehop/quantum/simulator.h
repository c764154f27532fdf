// The simulator: a circuit run on a state, with measurements, shots and expectation values.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "onehop/quantum/circuit.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/placement.h"
#include "onehop/quantum/profile.h"
#include "onehop/quantum/state.h"

namespace onehop::quantum {

class PlannedCircuit;

// Runs the operations of a placement on a state, once. It takes matrices as they are (they need not be unitary) and leaves the drawing of
// outcomes to its caller, so that shots, noise and restarts can be built on it. Collective.
class Executor {
 public:
  // Given a measurement or reset that is next (its number in the circuit, which of its targets) and the probability of 1: the outcome.
  using Draw = std::function<int(int operation, int target, double probability_of_one)>;

  // All must outlive it. If the placement chose the first state, it is written now; else the state must lie as the placement begins.
  // `profile`: where to write down the time that everything takes; nullptr: nothing is timed.
  Executor(State& state, const Placement& placement, int clbits, Draw draw, Profile* profile = nullptr);

  // Gates of small states are kept there ready to be applied, and taken from there. It must be what the placement belongs to, and outlive this.
  void remember_in(PlannedCircuit& planned) noexcept { planned_ = &planned; }

  // Does some more: a stage, or a part of a long one. False when there was nothing left; then the state's qubits are the circuit's.
  bool step();

  [[nodiscard]] std::vector<bool>& clbits() noexcept { return clbits_; }
  // For each operation whether it has been done (or needs nothing): with the amplitudes on their wires, the classical bits and what the
  // caller's draws depend on, where to go on from later, also on another number of ranks.
  [[nodiscard]] const std::vector<bool>& done() const noexcept { return done_; }
  [[nodiscard]] std::int64_t operations_done() const noexcept { return operations_done_; }
  // Nothing is left, and the state's qubits are the circuit's.
  [[nodiscard]] bool finished() const noexcept { return stage_ == placement_.stages.size(); }
  [[nodiscard]] const EngineCounters& counters() const noexcept { return counters_; }

 private:
  template <typename What>
  void timed(ProfileEntry::Kind kind, const What& what);
  void enter_stage();
  void do_one(int index);
  void flush();
  void count(const EngineCounters& more);
  [[nodiscard]] bool do_remembered(std::size_t end);
  [[nodiscard]] bool asked(const Condition& condition) const;
  int measure(int index, int target);

  State& state_;
  const Placement& placement_;
  Draw draw_;
  Profile* profile_;
  std::vector<bool> clbits_;
  std::vector<bool> done_;
  std::vector<LocalOperation> pending_;
  std::size_t stage_ = 0;
  std::size_t next_ = 0;  // in the stage
  std::int64_t operations_done_ = 0;
  EngineCounters counters_;
  PlannedCircuit* planned_ = nullptr;
};

// What measurements gave. An outcome is the circuit's classical bits, bit 0 least significant in word 0.
struct Outcomes {
  int clbits = 0;
  std::vector<std::vector<std::uint64_t>> values;  // distinct, ascending as numbers
  std::vector<std::int64_t> counts;                // of each value
  std::vector<std::uint32_t> of_shot;              // the place in `values` of each shot's outcome
};

struct Progress {
  std::int64_t done = 0;   // operations of this run
  std::int64_t total = 0;  // of a run
  std::int64_t run = 0;    // a circuit with measurements inside runs once for each history of outcomes
  std::int64_t shots_done = 0;
};

// Shots that have had the same outcomes so far.
struct Branch {
  std::vector<bool> history;
  std::vector<std::uint64_t> shots;
};

// Where a simulation stands between two steps. With the amplitudes it goes on from here on any number of ranks, with the same shots.
struct Standing {
  std::vector<int> bits;                // of each wire: the state speaks of wires here
  std::vector<bool> done;               // operations of the circuit that need not be done again in this run
  std::vector<bool> clbits;             // hidden ones included
  std::uint64_t events = 0;             // outcomes drawn in this run: with the seed all that the next ones depend on
  std::vector<Branch> waiting;          // the last one is the run under way
  std::vector<std::uint64_t> outcomes;  // words of each shot, as far as they are known
  std::vector<std::complex<double>> expectations;  // summed up so far
  std::int64_t runs = 0;
};

struct SimulationOptions {
  Precision precision = Precision::double_precision;
  std::int64_t shots = 0;
  std::uint64_t seed = 0;
  std::vector<PauliSum> observables;
  StateOptions state;
  double effort = 1;     // of the placement
  bool profile = false;  // write down where the time goes
  std::function<void(const Progress&)>
      progress;  // called on every rank, some hundred times at most in a run; may throw to end it
  // Asked on every rank between steps whether to keep the standing now; they must answer alike. May be empty.
  std::function<bool()> due;
  // Keeps it. The flips of the state's rank bits belong to what the amplitudes mean.
  std::function<void(const State&, const Standing&)> keep;
  // Go on from here: `restore` then writes the amplitudes, on bits `resume->bits` without flips. Must outlive the call.
  const Standing* resume = nullptr;
  std::function<void(const State&)> restore;
};

struct SimulationResult {
  Outcomes outcomes;
  // One for each observable; of a circuit with measurements inside the average over the shots.
  std::vector<std::complex<double>> expectations;
  double seconds = 0;
  int ranks = 1;                 // over which the state was split
  std::int64_t runs = 0;         // histories of outcomes
  int exchanges = 0;             // of all runs
  std::int64_t bytes_moved = 0;  // sum over the ranks
  EngineCounters engine;
  std::vector<ProfileEntry> profile;  // of this rank, if asked for
  double pass_seconds = 0;            // then: the least that a pass can take, all ranks at it together
  std::unique_ptr<State> state;       // after the last run, final measurements not made
};

// Runs a circuit from |0...0>. Collective; every rank gets the same result. The same seed gives the same shots on every number of ranks
// (see docs/reference/simulator.md). Ranks that the circuit is too small for repeat what others do.
//
// Measurements that nothing follows are not made: shots are drawn from the state, which stays as it is. Otherwise shots share runs by their
// history of outcomes: one run for each history that occurs, and never a second state.
// Throws BadInput for a circuit that is none, Error where the memory does not suffice.
[[nodiscard]] SimulationResult simulate(const Circuit& circuit, const Group& group,
                                        const SimulationOptions& options = {});

// Runs a circuit on a state that is there; its measurements are made, with random numbers from `seed`. Returns the classical bits.
std::vector<bool> run(State& state, const Circuit& circuit, std::uint64_t seed = 0);

// Outcomes of measuring these qubits (at most 64) of a state `shots` times, each time of the state as it is: bit i is that of qubits[i].
[[nodiscard]] std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits, std::int64_t shots,
                                                std::uint64_t seed);

}  // namespace onehop::quantum
