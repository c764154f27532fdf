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
  // Collective: a bootstrap for the ranks that pass the same color, ordered by key. Null if this bootstrap cannot make
  // one; the group then makes one in shared memory.
  [[nodiscard]] virtual std::unique_ptr<Bootstrap> split(int color, int key) {
    (void)color;
    (void)key;
    return nullptr;
  }
  // The same for a bootstrap that needs to know the rank and size in the part, both 0 for a rank that joins none. It is
  // asked on all ranks if can_split_alone().
  [[nodiscard]] virtual bool can_split_alone() const { return false; }
  [[nodiscard]] virtual std::unique_ptr<Bootstrap> split_alone(int color, int rank, int size) {
    (void)color;
    (void)rank;
    (void)size;
    return nullptr;
  }
  // For a split group: sets its ranks in the numbering of the world, for messages.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): an implementation keeps them
  virtual void set_world_ranks(std::vector<int> ranks) { (void)ranks; }
  // Limit in seconds for every wait (0: none).
  virtual void set_timeout(double seconds) { (void)seconds; }
  // For a bootstrap that cannot detect lost ranks by itself: `gone` returns a rank that has died or closed its group,
  // or -1; `tell` reports to the ranks that wait for this one the rank because of which it gives up.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): implementations store both.
  virtual void watch(std::function<int()> /*gone*/, std::function<void(int)> /*tell*/) {}
  // The transport between machines that comes with this bootstrap (MPI); null if none. Called once, collectively.
  [[nodiscard]] virtual std::shared_ptr<Transport> remote_transport() { return nullptr; }
};

}  // namespace onehop::detail
