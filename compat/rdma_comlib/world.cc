#include "compat/rdma_comlib/world.h"

#include <atomic>
#include <mutex>
#include <optional>

#include "onehop/error.h"

namespace onehop::compat::rdma_comlib {
namespace {

struct World {
  std::mutex mutex;
  std::optional<Group> group;
  std::atomic<bool> closed = false;
};

World& the_world() {
  static World world;
  return world;
}

}  // namespace

void open_world() {
  the_world().closed = false;
  static_cast<void>(group());
}

void close_world() {
  World& world = the_world();
  const std::lock_guard guard(world.mutex);
  if (world.closed.exchange(true)) throw BadInput("expected to be called once, found the ranks parted already");
  world.group.reset();
  // Programs finalise MPI after this, and the group may use MPI.
  Group::close_world();
}

void check_open() {
  if (!the_world().closed.load(std::memory_order_relaxed)) return;
  throw BadInput("expected to be called before rdma_comlib_finalize; call rdma_comlib_init to begin again");
}

Group group() {
  check_open();
  World& world = the_world();
  const std::lock_guard guard(world.mutex);
  if (!world.group) world.group = Group::world();
  return *world.group;
}

std::vector<int> ranks_of_host() {
  World& world = the_world();
  const std::lock_guard guard(world.mutex);
  return world.group ? world.group->local_ranks() : std::vector<int>{0};
}

int own_rank() {
  World& world = the_world();
  const std::lock_guard guard(world.mutex);
  return world.group ? world.group->rank() : 0;
}

}  // namespace onehop::compat::rdma_comlib
