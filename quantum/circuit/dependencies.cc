#include "quantum/circuit/dependencies.h"

#include <algorithm>
#include <map>

namespace onehop::quantum::detail {
namespace {

// Collects the groups of every resource that orders operations: wires, then classical bits, then the sequence of
// outcomes.
class Builder {
 public:
  Builder(std::size_t operations, int wires, int clbits)
      : wires_(wires), outcomes_(wires + clbits), last_(static_cast<std::size_t>(outcomes_) + 1) {
    result_.commutations.resize(operations);
    result_.groups.resize(operations);
    result_.level.assign(operations, 0);
    result_.needed_local.resize(static_cast<std::size_t>(wires));
  }

  void add(int index, const Operation& operation) {
    std::map<int, Letter> uses;
    Commutation& commutation = result_.commutations[static_cast<std::size_t>(index)];
    commutation = commutation_of(operation);
    for (const auto& [wire, letter] : commutation.letters) uses[wire] = letter;
    for (const int bit : operation.condition.clbits) uses[wires_ + bit] = Letter::z;  // reading commutes with reading
    for (const int bit : operation.clbits) uses[wires_ + bit] = Letter::any;
    if (operation.kind == OperationKind::measure || operation.kind == OperationKind::reset)
      uses[outcomes_] = Letter::any;
    int level = 0;
    for (const auto& [resource, letter] : uses) level = std::max(level, enter(index, resource, letter));
    if (!commutation.local.empty()) ++level;
    result_.level[static_cast<std::size_t>(index)] = level;
    for (const auto& [resource, letter] : uses) {
      Last& last = last_[static_cast<std::size_t>(resource)];
      last.level = std::max(last.level, level);
    }
    for (const int wire : commutation.local) result_.needed_local[static_cast<std::size_t>(wire)].push_back(index);
  }

  Dependencies take() { return std::move(result_); }

 private:
  struct Last {
    int group = -1;
    Letter letter = Letter::any;
    int level = 0;         // the highest in the group
    int level_before = 0;  // the highest in the groups before it
  };

  // Adds the operation to the last group of the resource, or to a new one. Returns the minimum level that this gives
  // the operation.
  int enter(int index, int resource, Letter letter) {
    Last& last = last_[static_cast<std::size_t>(resource)];
    if (last.group < 0 || letter == Letter::any || letter != last.letter) {
      const int group = static_cast<int>(result_.members.size());
      result_.members.emplace_back();
      result_.next.push_back(-1);
      if (last.group >= 0) result_.next[static_cast<std::size_t>(last.group)] = group;
      last = {group, letter, last.level, last.level};
    }
    result_.members[static_cast<std::size_t>(last.group)].push_back(index);
    result_.groups[static_cast<std::size_t>(index)].push_back(last.group);
    return last.level_before;
  }

  int wires_;
  int outcomes_;
  std::vector<Last> last_;
  Dependencies result_;
};

}  // namespace

Dependencies dependencies_of(const std::vector<Operation>& operations, int wires, int clbits,
                             std::vector<bool> absent) {
  Builder builder(operations.size(), wires, clbits);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!absent[i]) builder.add(static_cast<int>(i), operations[i]);
  }
  Dependencies result = builder.take();
  result.absent = std::move(absent);
  return result;
}

}  // namespace onehop::quantum::detail
