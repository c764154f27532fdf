// Outcomes of measuring qubits of a state, for many shots at once, without changing or copying it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onehop/quantum/state.h"

namespace onehop::quantum {

// For each shot (a number that stands for its random numbers) the values of the qubits, bit i that of qubits[i]. Collective. The qubits are
// decided one after the other, the highest first, each with a random number of its own: then a probability that is rounded
// otherwise on another number of ranks decides otherwise only if a random number lies just between.
[[nodiscard]] std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits,
                                                std::span<const std::uint64_t> shots, std::uint64_t seed);

}  // namespace onehop::quantum
