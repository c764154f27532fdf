// Dependencies between operations: operations that share wires or classical bits keep their order unless they commute.
#pragma once

#include <vector>

#include "quantum/circuit/commutation.h"

namespace onehop::quantum::detail {

// Along each wire, consecutive operations that commute form a group. An operation may run once all preceding groups, on
// every wire that it touches, are done. Groups take memory proportional to the number of operations; edges between
// pairs of operations could take its square.
struct Dependencies {
  std::vector<Commutation> commutations;       // for each operation
  std::vector<std::vector<int>> groups;        // for each operation: the groups it belongs to
  std::vector<std::vector<int>> members;       // for each group: its operations
  std::vector<int> next;                       // for each group: the next group on the same wire, or -1
  std::vector<std::vector<int>> needed_local;  // for each wire: operations that need it local, in program order
  std::vector<int>
      level;  // for each operation: the length of the longest chain of operations with local wires that ends with it
  std::vector<bool> absent;  // operations that need no work: uncontrolled swaps, barriers, and those done already

  [[nodiscard]] std::size_t size() const noexcept { return commutations.size(); }
};

// Computes the dependencies between operations on `wires` wires. Measurements and resets also keep their order among
// themselves, because the meaning of each random number depends on the outcomes drawn before it.
[[nodiscard]] Dependencies dependencies_of(const std::vector<Operation>& operations, int wires, int clbits,
                                           std::vector<bool> absent);

}  // namespace onehop::quantum::detail
