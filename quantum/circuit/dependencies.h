// What has to come before what: operations on shared wires or classical bits keep their order unless they commute.
#pragma once

#include <vector>

#include "quantum/circuit/commutation.h"

namespace onehop::quantum::detail {

// Along each wire the operations form groups: members of a group commute there, groups follow each other. An operation may be done once the
// groups before its own, on every wire it touches, are done. That takes memory in proportion to the operations, where arrows from
// each operation to each would take its square.
struct Dependencies {
  std::vector<Structure> structures;           // of each operation
  std::vector<std::vector<int>> groups;        // of each operation: the groups it belongs to
  std::vector<std::vector<int>> members;       // of each group
  std::vector<int> next;                       // of each group: the one after it on the same wire, or -1
  std::vector<std::vector<int>> needed_local;  // for each wire: operations that need it local, in program order
  std::vector<int> level;    // of each operation: how many operations that need something local lead to it
  std::vector<bool> absent;  // operations that are not there: uncontrolled swaps, barriers, those done already

  [[nodiscard]] std::size_t size() const noexcept { return structures.size(); }
};

// Of operations on `wires` wires. Measurements and resets keep their order among themselves as well, because which outcome a random
// number stands for depends on those before.
[[nodiscard]] Dependencies dependencies_of(const std::vector<Operation>& operations, int wires, int clbits,
                                           std::vector<bool> absent);

}  // namespace onehop::quantum::detail
