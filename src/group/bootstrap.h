// The bootstrap of a group: one all-gather of bytes, on which all other set-up is built.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "onehop/group.h"

namespace onehop::detail {

class Transport;

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  [[nodiscard]] virtual Gathered allgather(std::span<const std::byte> mine) = 0;
  // Collective: a bootstrap for the ranks that give the same color, ordered by key. Null where this bootstrap cannot
  // make one; then the group makes one in shared memory.
  [[nodiscard]] virtual std::unique_ptr<Bootstrap> split(int color, int key) {
    (void)color;
    (void)key;
    return nullptr;
  }
  // For a group that is part of another: its ranks in the numbering of the world, for messages.
  virtual void set_world_ranks(std::vector<int> ranks) { (void)ranks; }
  // Limit in seconds for every wait (0: none).
  virtual void set_timeout(double seconds) { (void)seconds; }
  // For a bootstrap that cannot see by itself how its ranks are: `gone` gives one that has died or has closed its group, or -1;
  // `tell` makes known to the others, who wait for this rank in turn, which one this rank has given up for.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who does something here keeps both.
  virtual void watch(std::function<int()> /*gone*/, std::function<void(int)> /*tell*/) {}
  // The transport between machines that comes with this bootstrap (MPI); null if none. Called once, collectively.
  [[nodiscard]] virtual std::shared_ptr<Transport> remote_transport() { return nullptr; }
};

}  // namespace onehop::detail
