// A walk through a circuit: does whatever can be done where the wires lie now, then waits for an exchange.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "quantum/circuit/dependencies.h"

namespace onehop::quantum::detail {

class Walk {
 public:
  // `remote`: whether each wire is a bit of the rank's number.
  Walk(const Dependencies& dependencies, std::vector<bool> remote);

  // Does all that can be done, the earliest of the program first; adds their numbers to `order` if given.
  void run(std::vector<int>* order = nullptr);

  [[nodiscard]] bool finished() const noexcept { return blocked_.empty() && ready_.empty(); }
  [[nodiscard]] int executed() const noexcept { return executed_; }
  // Operations that wait for nothing but wires that are remote.
  [[nodiscard]] const std::vector<int>& blocked() const noexcept { return blocked_; }
  [[nodiscard]] const std::vector<bool>& remote() const noexcept { return remote_; }
  [[nodiscard]] const Dependencies& dependencies() const noexcept { return *dependencies_; }

  // The next operation, in program order, that needs the wire local and is not done; -1: none.
  [[nodiscard]] int next_need(int wire) const;

  void exchange(const std::vector<int>& in, const std::vector<int>& out);

 private:
  void open(int index);
  void complete(int index);
  [[nodiscard]] bool can_run(int index) const;

  const Dependencies* dependencies_;
  std::vector<bool> remote_;
  std::vector<bool> done_;
  std::vector<int> remaining_;               // of each group: members that are not done
  std::vector<int> waiting_;                 // of each operation: groups of its wires that have to be done first
  mutable std::vector<std::size_t> cursor_;  // into needed_local of each wire
  std::vector<int> blocked_;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready_;
  int executed_ = 0;
};

}  // namespace onehop::quantum::detail
