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

// The bytes of a plain value, to be gathered.
template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

// A part that is split from a group.
struct GroupPart {
  int color = 0;
  int key = 0;
  std::vector<int> members;  // in the order of their ranks in the part; empty on a rank that joins none
  int rank = 0;              // of this process in the part
};

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  [[nodiscard]] virtual Gathered allgather(std::span<const std::byte> mine) = 0;
  // Whether split() makes the bootstrap of a part; otherwise the group makes it in shared memory.
  [[nodiscard]] virtual bool can_split() const { return false; }
  // Collective. Null for a rank that joins no part.
  [[nodiscard]] virtual std::unique_ptr<Bootstrap> split(const GroupPart& /*part*/) { return nullptr; }
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
