// Schedules the operations of a circuit: runs every operation that is possible with the current set of remote wires,
// until an exchange is needed.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "quantum/circuit/dependencies.h"

namespace onehop::quantum::detail {

class CircuitScheduler {
 public:
  // `remote`: for each wire, whether it is a bit of the rank's number.
  CircuitScheduler(const Dependencies& dependencies, std::vector<bool> remote);

  // Runs all operations that can run, in program order, and appends their indices to `order` unless it is null.
  void run(std::vector<int>* order = nullptr);

  [[nodiscard]] bool finished() const noexcept { return blocked_.empty() && ready_.empty(); }
  [[nodiscard]] int executed() const noexcept { return executed_; }
  // For each operation, whether it is done.
  [[nodiscard]] const std::vector<bool>& done() const noexcept { return done_; }
  // Operations whose dependencies are done but that need a remote wire to be local.
  [[nodiscard]] const std::vector<int>& blocked() const noexcept { return blocked_; }
  [[nodiscard]] const std::vector<bool>& remote() const noexcept { return remote_; }
  [[nodiscard]] const Dependencies& dependencies() const noexcept { return *dependencies_; }

  // The index of the next pending operation that needs the wire to be local, in program order; -1 if there is none.
  [[nodiscard]] int next_need(int wire) const;

  // Makes the wires `in` local and the wires `out` remote.
  void exchange(const std::vector<int>& in, const std::vector<int>& out);

 private:
  void open(int index);
  void complete(int index);
  [[nodiscard]] bool can_run(int index) const;

  const Dependencies* dependencies_;
  std::vector<bool> remote_;
  std::vector<bool> done_;
  std::vector<int> remaining_;               // for each group: members that are not done
  std::vector<int> waiting_;                 // for each operation: preceding groups on its wires that are not done
  mutable std::vector<std::size_t> cursor_;  // into needed_local of each wire
  std::vector<int> blocked_;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready_;
  int executed_ = 0;
};

}  // namespace onehop::quantum::detail
