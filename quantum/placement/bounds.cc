// Lower bounds on exchanges: a search over sets of operations that fewer remote wires than there are allow.
//
// With k remote wires at a time, the operations of a stage are those that need none of the k to be local. Whoever
// forgets all but j < k of them allows more operations, so that the least number of stages with j remote wires is a
// lower bound for k. For small j all sequences of sets are searched: it suffices to run every operation that can run,
// and to follow only those results that no other result contains.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "onehop/quantum/placement.h"
#include "quantum/placement/circuit_scheduler.h"

namespace onehop::quantum {
namespace {

using detail::CircuitScheduler;
using detail::Dependencies;

// The approximate number of steps of a search, each one the run or the copy of an operation, and the most sets of wires
// to choose from at each exchange.
constexpr std::int64_t max_steps = 20'000'000;
constexpr std::size_t max_sets = 600;
constexpr std::size_t max_results = 2000;

using Bits = std::vector<bool>;

bool contains(const Bits& whole, const Bits& part) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] && !whole[i]) return false;
  }
  return true;
}

// All sets of `size` of the wires, as lists; empty if there are too many.
std::vector<std::vector<int>> sets_of(int wires, int size) {
  std::vector<std::vector<int>> found{{}};
  for (int k = 0; k < size; ++k) {
    std::vector<std::vector<int>> longer;
    for (const auto& one : found) {
      for (int wire = one.empty() ? 0 : one.back() + 1; wire < wires; ++wire) {
        longer.push_back(one);
        longer.back().push_back(wire);
        if (longer.size() > max_sets * static_cast<std::size_t>(wires)) return {};
      }
    }
    found = std::move(longer);
  }
  return found.size() > max_sets ? std::vector<std::vector<int>>{} : found;
}

class Search {
 public:
  // `remote`: the number of remote wires; `first`: those of the first stage, or empty if they are free.
  Search(const Dependencies& dependencies, int remote, std::vector<int> first)
      : dependencies_(dependencies),
        wires_(static_cast<int>(dependencies.needed_local.size())),
        remote_(remote),
        first_(std::move(first)) {}

  // The least number of stages if only `size` remote wires count before the last stage, or a smaller number if the
  // search takes too long.
  int stages(int size) {
    const auto sets = sets_of(wires_, size);
    const auto operations = static_cast<std::int64_t>(dependencies_.size());
    if (sets.empty() || static_cast<std::int64_t>(sets.size()) * operations > max_steps) return 1;
    std::int64_t steps = 0;
    std::vector<CircuitScheduler> level;
    if (first_.empty()) {
      if (can_end(CircuitScheduler(dependencies_, Bits(static_cast<std::size_t>(wires_), true)))) return 1;
      for (const auto& set : sets) level.push_back(begin(set));
    } else {
      level.push_back(begin(first_));
      if (level.front().finished()) return 1;
    }
    for (int count = 2;; ++count) {
      level = largest(std::move(level));
      if (std::any_of(level.begin(), level.end(), [&](const auto& one) { return can_end(one); })) return count;
      if (level.size() > max_results) return count + 1;  // the stages so far do not suffice
      std::vector<CircuitScheduler> next;
      std::set<Bits> seen;
      for (const CircuitScheduler& one : level) {
        for (const auto& set : sets) {
          CircuitScheduler after = one;
          move(after, set);
          after.run();
          steps += operations;
          if (steps > max_steps) return count + 1;
          if (seen.insert(after.done()).second) next.push_back(std::move(after));
        }
      }
      level = std::move(next);
    }
  }

 private:
  [[nodiscard]] CircuitScheduler begin(const std::vector<int>& set) const {
    Bits remote(static_cast<std::size_t>(wires_), false);
    for (const int wire : set) remote[static_cast<std::size_t>(wire)] = true;
    CircuitScheduler scheduler(dependencies_, std::move(remote));
    scheduler.run();
    return scheduler;
  }

  void move(CircuitScheduler& scheduler, const std::vector<int>& set) const {
    std::vector<int> in;
    for (int wire = 0; wire < wires_; ++wire) {
      if (scheduler.remote()[static_cast<std::size_t>(wire)]) in.push_back(wire);
    }
    scheduler.exchange(in, set);
  }

  // Whether one more stage suffices: enough wires are not needed any more.
  [[nodiscard]] bool can_end(const CircuitScheduler& scheduler) const {
    int idle = 0;
    for (int wire = 0; wire < wires_; ++wire) idle += scheduler.next_need(wire) < 0 ? 1 : 0;
    return idle >= remote_;
  }

  static std::vector<CircuitScheduler> largest(std::vector<CircuitScheduler> all) {
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.executed() > b.executed(); });
    std::vector<CircuitScheduler> kept;
    for (CircuitScheduler& one : all) {
      const bool useless =
          std::any_of(kept.begin(), kept.end(), [&](const auto& other) { return contains(other.done(), one.done()); });
      if (!useless) kept.push_back(std::move(one));
    }
    return kept;
  }

  const Dependencies& dependencies_;
  int wires_;
  int remote_;
  std::vector<int> first_;
};

// The dependencies of the operations that a placement runs.
Dependencies dependencies_of(const Placement& placement) {
  std::vector<bool> absent(placement.operations.size(), true);
  int clbits = 0;
  for (const Stage& stage : placement.stages) {
    for (const int index : stage.operations) absent[static_cast<std::size_t>(index)] = false;
  }
  for (const Operation& operation : placement.operations) {
    for (const int bit : operation.clbits) clbits = std::max(clbits, bit + 1);
    for (const int bit : operation.condition.clbits) clbits = std::max(clbits, bit + 1);
  }
  return detail::dependencies_of(placement.operations, placement.qubits, clbits, std::move(absent));
}

int stages_at_least(const Dependencies& dependencies, int remote, const std::vector<int>& first) {
  Search search(dependencies, remote, first);
  int most = 1;
  for (int size = 1; size <= std::min(remote, 3); ++size) most = std::max(most, search.stages(size));
  return most;
}

}  // namespace

int Placement::exchanges_at_least() const {
  const int remote = qubits - local_bits;
  if (remote == 0 || exchanges() == 0) return 0;
  std::vector<int> first;
  for (int wire = 0; first_state.empty() && wire < qubits; ++wire) {
    if (first_bits[static_cast<std::size_t>(wire)] >= local_bits) first.push_back(wire);
  }
  return std::min(exchanges(), stages_at_least(dependencies_of(*this), remote, first) - 1);
}

}  // namespace onehop::quantum
