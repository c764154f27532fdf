// Work in the world and in groups that are split from it.
#pragma once

#include <cstdint>
#include <functional>

#include "onehop/group.h"
#include "tests/soak/native/processes.h"

namespace onehop::soak {

// Returns a step that waits in the world or in a part of it, makes plans and drops them, and splits the world anew and
// closes old parts. Notes in `report` in which group a rank was lost, and throws PeerLost with its number in the world.
[[nodiscard]] std::function<void()> split_steps(const Group& world, Report& report, std::uint64_t seed);

}  // namespace onehop::soak
