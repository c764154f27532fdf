#include "src/group/driven.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

namespace onehop::detail {
namespace {

struct Everybody {
  std::mutex mutex;
  std::vector<Driven*> members;
  std::size_t next = 0;
  const Everybody* of_the_parent = nullptr;  // kept, not used: what a fork copied is never destroyed here
};

// Never destroyed: groups of static lifetime may outlast it.
Everybody*& everybody() {
  static auto* all = new Everybody;
  return all;
}

}  // namespace

void Driven::join() {
  // A forked child begins with nobody: it must leave its parent's libraries alone, and a thread that it does not have may hold
  // the mutex.
  static const int once = pthread_atfork(nullptr, nullptr, [] {
    auto* own = new Everybody;
    own->of_the_parent = everybody();
    everybody() = own;
    count_.store(0, std::memory_order_relaxed);
  });
  static_cast<void>(once);
  Everybody& all = *everybody();
  const std::lock_guard guard(all.mutex);
  if (std::ranges::find(all.members, this) != all.members.end()) return;
  all.members.push_back(this);
  count_.store(static_cast<int>(all.members.size()), std::memory_order_relaxed);
}

void Driven::leave() noexcept {
  Everybody& all = *everybody();
  const std::lock_guard guard(all.mutex);
  std::erase(all.members, this);
  count_.store(static_cast<int>(all.members.size()), std::memory_order_relaxed);
}

void Driven::drive_next() noexcept {
  Everybody& all = *everybody();
  // Where another thread drives already, that is enough.
  const std::unique_lock guard(all.mutex, std::try_to_lock);
  if (guard.owns_lock() && !all.members.empty()) all.members[all.next++ % all.members.size()]->drive();
}

}  // namespace onehop::detail
