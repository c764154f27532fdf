// The engine by itself: circuits of the usual families as local operations, timed, beside the time of a pass over the same memory.
#pragma once

#include <string>
#include <vector>

#include "onehop/quantum/engine.h"

namespace onehop::bench {

// "qft", "tfim-1d", "tfim-2d" (first-order Trotter, 10 steps), "brickwork" (Haar one-qubit gates and CZ, depth 20), "volume" (random
// two-qubit gates on random pairs, 10 layers), "ghz". Throws BadInput for another name.
[[nodiscard]] std::vector<quantum::LocalOperation> engine_circuit(const std::string& name, int qubits);
[[nodiscard]] const std::vector<std::string>& engine_circuits();

struct EngineTimes {
  double seconds = 0;       // the best of `repetitions`
  double plan_seconds = 0;  // of these, deciding what goes into which pass
  double passes = 0;
  double pass_seconds = 0;  // reading and writing the state once, the best
};

// bytes_per_amplitude: 8 or 16. threads: 0 as in EngineOptions.
[[nodiscard]] EngineTimes time_engine(const std::string& circuit, int qubits, int bytes_per_amplitude, int threads,
                                      int repetitions);

}  // namespace onehop::bench
