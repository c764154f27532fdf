// Noisy circuits on state vectors: every trajectory draws one Kraus operator of each channel.
//
// Trajectories share their histories. All begin as one run in which every channel applies its default operator, the one
// of the largest weight. Where some of them draw another operator, they branch off with a copy of the state.
// Trajectories that draw the same operators everywhere are one history and run once.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "onehop/quantum/circuit.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/state.h"

namespace onehop::quantum {

// A channel on k qubits: rho becomes the sum of K rho K^dagger over the Kraus operators K.
struct NoiseChannel {
  std::vector<std::vector<Complex>> operators;  // each 4^k numbers, row-major
  // The probability of each operator if all of them are multiples of unitary matrices, so that their probabilities do
  // not depend on the state. Otherwise empty.
  std::vector<double> probabilities;
};

// A channel that follows a gate. The first qubit is the least significant bit of the operators' index.
struct ChannelUse {
  int gate = 0;     // index into the operations of the circuit
  int channel = 0;  // index into NoisyCircuit::channels
  std::vector<int> qubits;
};

struct NoisyCircuit {
  Circuit circuit;  // gates and barriers without conditions
  std::vector<NoiseChannel> channels;
  std::vector<ChannelUse> uses;               // in the order of execution: by ascending gate
  std::vector<std::pair<int, int>> measured;  // (classical bit, qubit), measured at the end
};

struct TrajectoryOptions {
  Precision precision = Precision::double_precision;
  std::int64_t trajectories = 1;
  std::int64_t shots = 0;  // shot s is drawn at the end of trajectory s modulo their number
  std::uint64_t seed = 0;
  std::vector<PauliSum> observables;
  StateOptions state;
  // Bytes per rank for states. A state is split over as few ranks as this allows, and the ranks form groups that work
  // on different histories. 0: half of the memory that is available to the rank.
  std::int64_t memory = 0;
};

// Trajectories that drew the same operators.
struct History {
  std::uint64_t first = 0;                   // the lowest trajectory of this history
  std::int64_t count = 0;                    // the number of trajectories
  std::vector<std::complex<double>> values;  // of the observables
};

struct TrajectoryResult {
  std::vector<History> histories;       // by ascending `first`
  int words = 0;                        // per shot: classical bits, in words of 64
  std::vector<std::uint64_t> outcomes;  // shots x words; bit 0 is the least significant bit of word 0
  double seconds = 0;
  int ranks = 1;                         // over which a state is split
  int workers = 1;                       // groups of ranks, times threads, that work on different histories
  int exchanges = 0;                     // of this rank's states
  std::int64_t bytes_moved = 0;          // sent by all ranks together
  std::int64_t bytes_between_hosts = 0;  // the part of them that leaves a host
  std::unique_ptr<State> state;          // a final state, normalised; for a single history its own
};

// Runs trajectories from |0...0>. Collective; every rank gets the same result. The same seed gives the same
// trajectories and shots on every number of ranks and threads. Throws BadInput for invalid input, and Error if the
// memory does not suffice.
[[nodiscard]] TrajectoryResult simulate_trajectories(const NoisyCircuit& noisy, const Group& group,
                                                     const TrajectoryOptions& options);

}  // namespace onehop::quantum
