// The MPI candidates that `onehop bench` has besides those of measure/mpi/peers.h. Each has its best settings; all are
// collective, and there are none if why_no_mpi_peers returns a reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/mpi/peers.h"
#include "onehop/patterns.h"

namespace onehop::bench {

using namespace measure;  // NOLINT(google-build-using-namespace)

// Messages of equal size between two ranks, either back and forth, where a receive() follows each send(), and vice
// versa, or in both directions at once, where both ranks send before they receive.
class MessagePeer {
 public:
  virtual ~MessagePeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "Send/Recv", "Put + flush + flag", ...
  // The memory in which the caller writes a message before send().
  [[nodiscard]] virtual std::span<std::byte> source(int message) = 0;
  virtual void send() = 0;
  virtual void receive() = 0;  // waits until all messages have arrived and the sources may be overwritten
  // A message that was received last; valid until this rank's next send().
  [[nodiscard]] virtual std::span<const std::byte> result(int message) const = 0;
};
// Calls of two-sided messages, only back and forth, and puts. In both directions, other ways to send messages are halos
// of two ranks (mpi_halo_peers).
[[nodiscard]] std::vector<std::unique_ptr<MessagePeer>> mpi_message_peers(const Group& group, std::int64_t bytes,
                                                                          int messages, bool both_ways);

// Swaps one pair of bits after the other, as simulators do: packs half of the rank's elements into a buffer as large as
// the rank's part, exchanges it with another rank by MPI_Sendrecv, and unpacks. Null without MPI.
[[nodiscard]] std::function<void()> mpi_swaps(const Group& group, std::span<std::byte> state,
                                              const PermuteBitsSpec& spec,
                                              const std::vector<std::pair<int, int>>& pairs);

}  // namespace onehop::bench
