// A program: a circuit with channels, readout errors, saved data, states that are set, postselection and jumps between
// its gates and measurements. One walk over the measurement records runs it.
//
// Each run follows one record: the outcomes of its random choices. Shots whose choices agree share a run. Where they
// do not agree, the run follows the majority, and the others wait until the program runs again with their record. There
// is never a second state.
//
// Programs of gates, channels and resets on a state vector, with measurements at the end only, have no records but
// histories (quantum/simulator/trajectory_walk.h): they branch off with a copy of the state, and are divided over ranks
// and threads.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "onehop/quantum/circuit.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/simulator.h"

namespace onehop::quantum {

// A channel on k qubits: rho becomes the sum of K rho K^dagger over the Kraus operators K.
struct Channel {
  std::string name;
  std::vector<std::vector<Complex>> operators;  // each 4^k numbers, row-major, the first qubit least significant
  // The probability of each operator if all of them are multiples of unitary matrices, so that their probabilities do
  // not depend on the state. Otherwise empty.
  std::vector<double> probabilities;
};

// Data of the current state.
struct Save {
  enum class Kind : std::uint8_t {
    state,           // all amplitudes of a state vector; the density matrix of the targets
    amplitudes,      // of a state vector, where the targets, all qubits, have the values `indices`; empty: all
    weights,         // the probabilities of these values
    probabilities,   // of all values of the targets
    density_matrix,  // of the targets, row-major
    expectations,    // of `observables`
    variances,       // expectation value and variance of the first observable; on a matrix the second one is its square
  };
  Kind kind = Kind::probabilities;
  std::vector<std::uint64_t> indices;
  std::vector<PauliSum> observables;
};

// The probabilities to read 1 for 0 and 0 for 1 on a qubit.
using Misread = std::pair<double, double>;

struct Program {
  Circuit circuit;
  std::vector<Channel> channels;
  std::vector<Save> saves;
  std::vector<Misread> readout;  // of each qubit; empty: no errors

  // Throws BadInput as Circuit::validate does, also for channels, data and marks that do not exist, and for data and
  // states that need the other kind of state.
  void validate(bool mixed) const;
  // Whether it has only gates, channels and resets without conditions, and measurements at its end.
  [[nodiscard]] bool has_histories() const;
  // Whether it has only gates and channels without conditions, and measurements at its end; data that it saves and
  // states that it sets do not matter.
  [[nodiscard]] bool has_gates_only() const;
};

struct ProgramOptions : SimulationOptions {
  bool mixed = false;             // on a density matrix
  std::int64_t trajectories = 0;  // runs; shot s is drawn at the end of run s modulo their number. 0: one for each shot
  bool histories = false;         // share histories if the program has them and the state is a vector
  // Bytes per rank for the states of histories. A state is split over as few ranks as this allows, and the ranks form
  // groups that work on different histories. 0: half of the memory that is available to the rank.
  std::int64_t memory = 0;
  // Draws how many of `runs` have the outcome 1, whose probability is `one`; empty: each run draws by itself.
  std::function<std::int64_t(std::int64_t runs, double one)> split;
  // Follow every outcome that has a probability, and weigh the runs by their probabilities. Nothing is drawn.
  bool exact = false;
};

// Runs a program from |0...0>. Collective; every rank gets the same result. The same seed gives the same shots on every
// number of ranks and threads. Throws BadInput for invalid input, and Error if the memory does not suffice or if the
// jumps of a run do not end.
[[nodiscard]] SimulationResult run_program(const Program& program, const Group& group, const ProgramOptions& options);

// Runs a program once on a state that exists, a vector or (`mixed`) a density matrix. Returns the classical bits.
// Collective.
std::vector<bool> run_program(State& state, const Program& program, bool mixed, std::uint64_t seed);

// The program as `run_program` runs it: without final measurements and without qubits that no operation uses.
[[nodiscard]] Program without_idle(const Program& program);

// -- density matrices, as vectors of 2n qubits: qubit q is row bit q, and qubit n + q its column bit ------------------

// The gates and channels of a program as a circuit on 2n qubits: gates act on rows and, complex conjugated, on columns;
// channels and resets become superoperators. Conditions are left out, and so is everything else.
[[nodiscard]] Circuit on_rows_and_columns(const Program& program);
// The probabilities of the 2^k values of these qubits. Collective.
[[nodiscard]] std::vector<double> mixed_probabilities(const State& state, std::span<const int> qubits);
// Samples the outcomes of a measurement of these qubits without changing the state. Collective.
[[nodiscard]] std::vector<std::uint64_t> mixed_sample(const State& state, std::span<const int> qubits,
                                                      std::int64_t shots, std::uint64_t seed);
// The trace of rho times each sum. Collective.
[[nodiscard]] std::vector<Complex> mixed_expectations(const State& state, std::span<const PauliSum> sums);
// The reduced density matrix of these qubits, row-major. Collective.
[[nodiscard]] std::vector<Complex> mixed_density_matrix(const State& state, std::span<const int> qubits);
// Projects onto a value of a qubit, which has this probability. Not collective.
void mixed_collapse(State& state, int qubit, int value, double probability);

}  // namespace onehop::quantum
