// Small machines with round numbers for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onehop/machine/machine.h"

namespace onehop::testing {

inline Figure guess(double value) { return {value, Basis::guessed, "this test"}; }

inline Level level(const std::string& name, Routing routing, std::vector<std::int64_t> extents) {
  Level level;
  level.name = name;
  level.routing = routing;
  level.extents = std::move(extents);
  level.latency = guess(1e-6);
  level.overhead = guess(2e-7);
  level.bandwidth = guess(1e10);
  if (routing == Routing::fat_tree) level.taper.assign(level.extents.size() - 1, 0.5);
  if (routing == Routing::dragonfly) {
    level.local_bandwidth = guess(8e9);
    level.group_bandwidth = guess(2e10);
  }
  return level;
}

inline Machine machine(std::vector<Level> levels) {
  Machine machine;
  machine.name = "test";
  machine.levels = std::move(levels);
  machine.memory_bandwidth = guess(1e11);
  machine.memory = guess(1e10);
  return machine;
}

}  // namespace onehop::testing
