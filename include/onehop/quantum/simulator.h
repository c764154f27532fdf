// The simulator runs circuits on a state, with measurements, shots and expectation values.
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

class PlacedCircuit;

// Runs the operations of a placement once on a state. Matrices need not be unitary, and the caller draws the outcomes
// of measurements, so that shots, noise and restarts can be built on top. Collective.
class Executor {
 public:
  // The outcome of a measurement or reset, 0 or 1, and the value that a measurement reads, which may be wrong.
  struct Drawn {
    int outcome = 0;
    int read = 0;
    // Implicit, so that a function may return the outcome alone.
    Drawn(int value) : outcome(value), read(value) {}  // NOLINT(google-explicit-constructor)
    Drawn(int the_outcome, int the_read) : outcome(the_outcome), read(the_read) {}
  };
  // Returns the next one. Arguments: the index of the operation in the circuit, the index of the target in the
  // operation, and the probability of 1.
  using Draw = std::function<Drawn(int operation, int target, double probability_of_one)>;

  // All arguments must outlive the executor. If the placement chose the first state, the constructor writes it;
  // otherwise the layout of the state must be the placement's first layout, or BadInput is thrown. `profile`: receives
  // the timings; nullptr: nothing is timed.
  Executor(State& state, const Placement& placement, int clbits, Draw draw, Profile* profile = nullptr);

  // Stores the compiled gates of small states in `compiled`, and reuses those that it has. The placement must be that
  // of `compiled`, which must outlive the executor.
  void use_compiled(PlacedCircuit& compiled) noexcept { compiled_ = &compiled; }

  // Runs a stage, or a part of a long one. Returns false if nothing was left to do; the state's qubits are then the
  // circuit's.
  bool step();

  [[nodiscard]] std::vector<bool>& clbits() noexcept { return clbits_; }
  // For each operation, whether it is done or needs no work. Together with the amplitudes on their wires, the classical
  // bits and the inputs of the caller's draws, this is enough to resume later, also on another number of ranks.
  [[nodiscard]] std::vector<bool> done() const;
  [[nodiscard]] std::int64_t operations_done() const noexcept { return operations_done_; }
  // Whether all operations are done and the state's qubits are the circuit's.
  [[nodiscard]] bool finished() const noexcept { return stage_ == placement_.stages.size(); }
  [[nodiscard]] const EngineCounters& counters() const noexcept { return counters_; }

 private:
  template <typename Body>
  void timed(ProfileEntry::Kind kind, const Body& body);
  void enter_stage();
  void do_one(int index);
  void flush();
  void make_pass();
  [[nodiscard]] bool run_compiled(std::size_t end);
  Drawn measure(int index, int target);

  State& state_;
  const Placement& placement_;
  Draw draw_;
  Profile* profile_;
  std::vector<bool> clbits_;
  std::vector<bool> done_;
  std::vector<LocalOperation> pending_;
  std::size_t stage_ = 0;
  std::size_t next_ = 0;  // index into the operations of the stage
  std::int64_t operations_done_ = 0;
  EngineCounters counters_;
  PlacedCircuit* compiled_ = nullptr;
};

// Measurement outcomes. An outcome is the value of the circuit's classical bits, or of all qubits if the circuit has no
// classical bits; bit 0 is the least significant bit of word 0.
struct Outcomes {
  int clbits = 0;                                  // bits of an outcome
  std::vector<std::vector<std::uint64_t>> values;  // distinct outcomes in ascending order
  std::vector<std::int64_t> counts;                // how often each value occurred
  std::vector<std::uint32_t> of_shot;              // for each shot, the index of its outcome in `values`
};

struct Progress {
  std::int64_t done = 0;   // operations done in this run
  std::int64_t total = 0;  // operations of a run
  std::int64_t run = 0;    // the index of the run; a circuit with measurements inside runs once per measurement record
  std::int64_t shots_done = 0;
};

// Shots whose measurement outcomes have agreed so far.
struct Branch {
  std::vector<int> record;  // the measurement record: the outcomes in the order in which they were drawn
  std::vector<std::uint64_t> shots;
  double weight = 1;  // its probability, if nothing is drawn
};

// The state of a simulation between two steps. Together with the amplitudes it is enough to resume on any number of
// ranks, with the same shots.
struct CheckpointState {
  std::vector<int> bits;        // the bit of each wire; the state's qubits are wires at this point
  std::vector<bool> done;       // for each operation of the circuit, whether this run is done with it
  std::vector<bool> clbits;     // including hidden ones
  std::uint64_t events = 0;     // outcomes drawn in this run; with the seed it determines the next random numbers
  std::vector<Branch> waiting;  // unfinished runs; the last one is in progress
  std::vector<std::uint64_t> outcomes;  // the classical bits of every shot in words of 64; 0 for unfinished shots
  std::vector<std::complex<double>> expectations;  // weighted sums over the finished runs
  std::int64_t runs = 0;                           // finished runs
  double fidelity_estimate = 1;                    // the lowest of the finished runs
};

struct SimulationOptions {
  Precision precision = Precision::double_precision;
  std::int64_t shots = 0;
  std::uint64_t seed = 0;
  std::vector<PauliSum> observables;
  StateOptions state;
  double search_seconds = 1;  // see PlacementOptions
  bool profile = false;       // record the time of each pass and exchange
  // Called on every rank, at most some hundred times in a run. It may throw to end the simulation. May be empty.
  std::function<void(const Progress&)> progress;
  // Called on every rank between steps: whether to save a checkpoint now. All ranks must return the same answer. May be
  // empty.
  std::function<bool()> due;
  // Saves a checkpoint: the state's amplitudes with its `flips()`, and the checkpoint state.
  std::function<void(const State&, const CheckpointState&)> keep;
  // If not null, resume from this checkpoint. `restore` must then write the amplitudes with the layout `resume->bits`
  // and no flips. Must outlive the call.
  const CheckpointState* resume = nullptr;
  std::function<void(const State&)> restore;
};

// Data that a run of a program has saved, with the classical bits at that time.
struct SavedData {
  int save = 0;  // index into Program::saves
  std::vector<bool> clbits;
  std::vector<std::complex<double>> values;
};

// A run of a program: one record of its random choices.
struct Run {
  std::uint64_t first = 0;                   // the lowest of its trajectories
  std::int64_t count = 0;                    // the number of them
  double weight = 1;                         // its probability, if nothing is drawn
  std::vector<std::uint64_t> shots;          // its trajectories, if the program saves data
  std::vector<bool> clbits;                  // at its end
  std::vector<std::complex<double>> values;  // of the observables
  std::vector<SavedData> saved;
};

// A factor of a state that is a product.
struct StateFactor {
  std::unique_ptr<State> state;
  std::vector<int> qubits;  // the qubit of the product that each qubit of `state` is
};

// The product of these factors and of |0>, or |1> for those in the mask `ones`, for all other qubits, on the ranks of
// the largest factor, in single precision if that is encoded. Without factors: nullptr. Collective. Throws Error if the
// memory does not suffice.
[[nodiscard]] std::unique_ptr<State> product_of(std::vector<StateFactor> factors, int qubits, std::uint64_t ones = 0);

struct SimulationResult {
  Outcomes outcomes;
  // The value of each observable; for a circuit with measurements inside, the average over the shots.
  std::vector<std::complex<double>> expectations;
  double seconds = 0;
  int ranks = 1;                         // the number of ranks that share the state
  int workers = 1;                       // groups of ranks, times threads, that work on different runs
  std::int64_t runs = 0;                 // how often the circuit ran: once for each measurement record
  std::vector<Run> made;                 // the runs of a program, by their first trajectories; of a circuit none
  int exchanges = 0;                     // in all runs
  std::int64_t bytes_moved = 0;          // sent by all ranks together
  std::int64_t bytes_between_hosts = 0;  // the part of them that leaves a host
  EngineCounters engine;
  DiskCounters disk;                  // of a state in a file
  double fidelity_estimate = 1;       // the lowest State::fidelity_estimate of all runs
  std::vector<ProfileEntry> profile;  // the profile of this rank, if `options.profile`
  double pass_seconds = 0;            // if `options.profile`: the minimum time of a pass, measured on all ranks at once
  int largest_state_qubits = 0;       // of the largest state: qubits that no operation joins are not in one
  // The state after the last run, before final measurements: `product_of` these has `qubits` qubits; for a density
  // matrix, those of rows, then those of columns. Empty if there were several states, and their product does not fit
  // into memory.
  std::vector<StateFactor> factors;
  int qubits = 0;
  std::uint64_t ones = 0;       // qubits that are in no factor and |1>
  bool measures_early = false;  // whether qubits were measured before the end because the state did not fit
};

// Runs a circuit from |0...0>. Collective; every rank gets the same result. The same seed gives the same shots on every
// number of ranks (see docs/reference/simulator.md). If the circuit is too small for all ranks, groups of ranks run it
// redundantly.
//
// Shots of a circuit without classical bits are those of a measurement of all qubits at its end.
//
// Idle qubits take no memory, and qubits that no operation joins have separate states.
//
// Final measurements do not change the state: shots are sampled from it. With measurements inside the circuit, shots
// with equal measurement records share a run: the circuit runs once for each record that occurs, and there is never a
// second state. Throws BadInput if the circuit or an option is invalid, and Error if the memory does not suffice.
[[nodiscard]] SimulationResult simulate(const Circuit& circuit, const Group& group,
                                        const SimulationOptions& options = {});

// Returns the placement with which `simulate` runs a circuit of `stored_circuits` on `ranks` ranks. `simulate` with
// options that agree (precision, search_seconds and the ranks per host) finds it again as long as the caller holds it,
// and usually longer. `options.bits` and `options.done` must be empty. Not collective.
[[nodiscard]] std::shared_ptr<const Placement> place_simulation(const Circuit& circuit, int ranks,
                                                                const PlacementOptions& options = {});

// The parts of a valid circuit that no operation joins, without final measurements, as `simulate` runs them; idle
// qubits are in none. Without `divide` they are one part, which is what a run with checkpoints has. `largest`: the
// number of qubits of the largest state that fits.
[[nodiscard]] std::vector<Circuit> stored_circuits(const Circuit& circuit, bool divide = true, int largest = 62,
                                                   std::span<const PauliSum> observables = {});

// Runs a circuit on an existing state and makes its measurements, with random numbers from `seed`. Returns the
// classical bits. Collective.
std::vector<bool> run(State& state, const Circuit& circuit, std::uint64_t seed = 0);

// Samples the outcomes of measuring these qubits (at most 64) `shots` times, without changing the state. Bit i of an
// outcome belongs to qubits[i]. Collective.
[[nodiscard]] std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits, std::int64_t shots,
                                                std::uint64_t seed);

}  // namespace onehop::quantum
