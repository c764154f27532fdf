// Samples measurement outcomes for many shots at once, without changing or copying the state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onehop/quantum/state.h"

namespace onehop::quantum {

// Returns the values of the qubits for each shot; bit i belongs to qubits[i]. The number of a shot selects its random
// numbers. Collective. The qubits are drawn one after the other, the highest first, each with its own random number. A
// probability that rounds differently on another number of ranks then changes an outcome only if a random number lies
// between the two values.
[[nodiscard]] std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits,
                                                std::span<const std::uint64_t> shots, std::uint64_t seed);

}  // namespace onehop::quantum
