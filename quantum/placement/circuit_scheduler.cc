#include "quantum/placement/circuit_scheduler.h"

#include <algorithm>

namespace onehop::quantum::detail {

CircuitScheduler::CircuitScheduler(const Dependencies& dependencies, std::vector<bool> remote)
    : dependencies_(&dependencies),
      remote_(std::move(remote)),
      done_(dependencies.absent),
      waiting_(dependencies.size(), 0),
      cursor_(dependencies.needed_local.size(), 0) {
  for (const auto& members : dependencies.members) remaining_.push_back(static_cast<int>(members.size()));
  for (const int next : dependencies.next) {
    if (next < 0) continue;
    for (const int member : dependencies.members[static_cast<std::size_t>(next)])
      ++waiting_[static_cast<std::size_t>(member)];
  }
  for (std::size_t i = 0; i < dependencies.size(); ++i) {
    if (!done_[i] && waiting_[i] == 0) open(static_cast<int>(i));
  }
}

bool CircuitScheduler::can_run(int index) const {
  const auto& local = dependencies_->commutations[static_cast<std::size_t>(index)].local;
  return std::none_of(local.begin(), local.end(), [&](int wire) { return remote_[static_cast<std::size_t>(wire)]; });
}

void CircuitScheduler::open(int index) {
  if (can_run(index)) {
    ready_.push(index);
  } else {
    blocked_.push_back(index);
  }
}

void CircuitScheduler::complete(int index) {
  done_[static_cast<std::size_t>(index)] = true;
  ++executed_;
  for (const int group : dependencies_->groups[static_cast<std::size_t>(index)]) {
    if (--remaining_[static_cast<std::size_t>(group)] > 0) continue;
    const int next = dependencies_->next[static_cast<std::size_t>(group)];
    if (next < 0) continue;
    for (const int member : dependencies_->members[static_cast<std::size_t>(next)]) {
      if (--waiting_[static_cast<std::size_t>(member)] == 0) open(member);
    }
  }
}

void CircuitScheduler::run(std::vector<int>* order) {
  while (!ready_.empty()) {
    const int index = ready_.top();
    ready_.pop();
    if (order != nullptr) order->push_back(index);
    complete(index);
  }
}

int CircuitScheduler::next_need(int wire) const {
  const auto& needs = dependencies_->needed_local[static_cast<std::size_t>(wire)];
  std::size_t& cursor = cursor_[static_cast<std::size_t>(wire)];
  while (cursor < needs.size() && done_[static_cast<std::size_t>(needs[cursor])]) ++cursor;
  return cursor < needs.size() ? needs[cursor] : -1;
}

void CircuitScheduler::exchange(const std::vector<int>& in, const std::vector<int>& out) {
  for (const int wire : in) remote_[static_cast<std::size_t>(wire)] = false;
  for (const int wire : out) remote_[static_cast<std::size_t>(wire)] = true;
  std::vector<int> blocked;
  blocked.swap(blocked_);
  for (const int index : blocked) open(index);
}

}  // namespace onehop::quantum::detail
