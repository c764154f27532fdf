// The MPI candidates that `onehop bench` has besides those of measure/mpi/peers.h.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // Called before the first message, and again for other parameters. Collective.
  virtual void prepare(std::int64_t bytes, int messages) = 0;
  // The memory in which the caller writes a message before send(); the same until the next prepare().
  [[nodiscard]] virtual std::span<std::byte> source(int message) = 0;
  virtual void send() = 0;
  virtual void receive() = 0;  // waits until all messages have arrived and the sources may be overwritten
  // A message that was received last; valid until this rank's next send().
  [[nodiscard]] virtual std::span<const std::byte> result(int message) const = 0;
};

enum class CollectiveKind : std::uint8_t { reduce_scatter, allgather, broadcast, all_to_all };

// These operations on arrays of float32; collective_lengths (bench/native/benchmarks.h) has their lengths.
class CollectivePeer {
 public:
  virtual ~CollectivePeer() = default;
  [[nodiscard]] virtual const char* name(CollectiveKind kind) const = 0;  // "MPI_Allgather", ...
  // For a broadcast from rank 0 both arrays are the same.
  virtual void run(CollectiveKind kind, std::span<float> source, std::span<float> result) = 0;
};

// The permutation of bits of a distributed state by other means, in place in this rank's part.
class PermutationPeer {
 public:
  virtual ~PermutationPeer() = default;
  virtual void run() = 0;  // collective
};

// All candidates of a kind, each with its best settings; none if why_no_mpi_peers returns a reason. Collective. The
// first two are for groups of two ranks.
[[nodiscard]] std::vector<std::unique_ptr<MessagePeer>> mpi_to_and_fro_peers(const Group& group);
[[nodiscard]] std::vector<std::unique_ptr<MessagePeer>> mpi_both_ways_peers(const Group& group);
[[nodiscard]] std::vector<std::unique_ptr<CollectivePeer>> mpi_collective_peers(const Group& group);

// Swaps one pair after the other, as simulators do: packs half of the rank's elements into a buffer as large as the
// rank's part, exchanges it with another rank by MPI_Sendrecv, and unpacks. Collective; null if there is no MPI.
[[nodiscard]] std::unique_ptr<PermutationPeer> mpi_swap_peer(const Group& group, std::span<std::byte> state,
                                                             const PermuteBitsSpec& spec,
                                                             const std::vector<std::pair<int, int>>& pairs);

}  // namespace onehop::bench
