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
// between the two values. `draws`: the place of each qubit in that order, if the order is another one, or that of a
// larger measurement; distinct.
[[nodiscard]] std::vector<std::uint64_t> sample(const State& state, std::span<const int> qubits,
                                                std::span<const std::uint64_t> shots, std::uint64_t seed,
                                                std::span<const int> draws = {});

// The number in [0, 1) that a shot draws: of the event of this number inside a circuit, or (`at_end`) in the order of
// the qubits that are measured at its end.
[[nodiscard]] double draw_number(std::uint64_t seed, std::uint64_t shot, std::uint64_t event, bool at_end);

}  // namespace onehop::quantum
