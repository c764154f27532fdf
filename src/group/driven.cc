#include "src/group/driven.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

namespace onehop::detail {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<Driven*> members;
  std::size_t next = 0;
  const Registry* of_the_parent = nullptr;  // a forked child's copy of its parent's registry: reachable, never used
};

// Never destroyed: groups of static lifetime may outlast it.
Registry*& registry() {
  static auto* all = new Registry;
  return all;
}

}  // namespace

void Driven::join() {
  // A forked child starts with an empty registry: it must not call its parent's libraries, and a thread that it does
  // not have may hold the mutex.
  static const int once = pthread_atfork(nullptr, nullptr, [] {
    auto* own = new Registry;
    own->of_the_parent = registry();
    registry() = own;
    count_.store(0, std::memory_order_relaxed);
  });
  static_cast<void>(once);
  Registry& all = *registry();
  const std::lock_guard guard(all.mutex);
  if (std::ranges::find(all.members, this) != all.members.end()) return;
  all.members.push_back(this);
  count_.store(static_cast<int>(all.members.size()), std::memory_order_relaxed);
}

void Driven::leave() noexcept {
  Registry& all = *registry();
  const std::lock_guard guard(all.mutex);
  std::erase(all.members, this);
  count_.store(static_cast<int>(all.members.size()), std::memory_order_relaxed);
}

void Driven::drive_next() noexcept {
  Registry& all = *registry();
  // If another thread is driving, that suffices.
  const std::unique_lock guard(all.mutex, std::try_to_lock);
  if (guard.owns_lock() && !all.members.empty()) all.members[all.next++ % all.members.size()]->drive();
}

}  // namespace onehop::detail
