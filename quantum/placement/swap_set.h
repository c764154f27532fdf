// Which wires change places when nothing more can be done where they lie: a rule, and a search that improves on it.
#pragma once

#include <cstdint>
#include <vector>

#include "quantum/placement/circuit_scheduler.h"

namespace onehop::quantum::detail {

struct Choice {
  std::vector<int> in;   // remote wires that become local ...
  std::vector<int> out;  // ... and those that go instead, as many
  friend bool operator==(const Choice&, const Choice&) = default;
};

// The rule: the first operation that waits gets its wires; further ones come with it while they are needed sooner than what goes out
// instead; what goes out is needed latest.
struct Rule {
  bool by_level = false;  // "sooner" counts operations that lead to one instead of places in the program
  int swaps = 0;          // exactly so many instead, if there are
  int kept = 0;           // wires that never go out if others can: see SearchOptions::pinned
};

struct SearchOptions {
  std::int64_t budget = 0;   // steps of walks that the search may make
  std::vector<bool> pinned;  // wires that should not go out: those on the lowest bits, inside a cache line
};

// The cost of an exchange of so many bits, as a fraction of a rank's amplitudes.
[[nodiscard]] double cost_of(std::size_t swaps);

[[nodiscard]] Choice choose(const Walk& walk, const Rule& rule, const SearchOptions& options);

// All exchanges from here to the end of the circuit.
struct Course {
  std::vector<Choice> choices;
  double cost = 0;
};
[[nodiscard]] Course course_of(Walk walk, const SearchOptions& options);

// The wires that are best remote when the placement of the first state is free.
[[nodiscard]] std::vector<bool> first_remote(const Dependencies& dependencies, int wires, int rank_bits,
                                             const SearchOptions& options);

}  // namespace onehop::quantum::detail
