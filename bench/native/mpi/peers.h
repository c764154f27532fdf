// The MPI candidates that `onehop bench` has besides those of measure/mpi/peers.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench/native/measure.h"
#include "measure/mpi/peers.h"

namespace onehop::bench {

// One message at a time, strictly back and forth: a receive() follows each send(), and vice versa.
class OneWayPeer {
 public:
  virtual ~OneWayPeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "Send/Recv", "Put + flush + flag", ...
  // Called before the first message, and again for another size. Collective.
  virtual void prepare(std::int64_t bytes) = 0;
  // The memory in which the caller writes the message before send(); the same until the next prepare().
  [[nodiscard]] virtual std::span<std::byte> source() = 0;
  virtual void send() = 0;
  // Waits for the next message, which stays valid until this rank's next send().
  [[nodiscard]] virtual std::span<const std::byte> receive() = 0;
};

// Several messages of equal size in both directions at once.
class ExchangePeer {
 public:
  virtual ~ExchangePeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Called before the first exchange, and again for other parameters. Collective.
  virtual void prepare(std::int64_t bytes, int messages) = 0;
  [[nodiscard]] virtual std::span<std::byte> source(int message) = 0;
  // Waits until all messages have arrived and the sources may be overwritten. Collective.
  virtual void exchange() = 0;
  // A message that the last exchange received; valid until the next one.
  [[nodiscard]] virtual std::span<const std::byte> result(int message) const = 0;
};

enum class CollectiveKind : std::uint8_t { reduce_scatter, allgather, broadcast, all_to_all };

// These operations on arrays of float32; bench/native/collective.h has their lengths.
class CollectivePeer {
 public:
  virtual ~CollectivePeer() = default;
  [[nodiscard]] virtual const char* name(CollectiveKind kind) const = 0;  // "MPI_Allgather", ...
  // For a broadcast from rank 0 both arrays are the same.
  virtual void run(CollectiveKind kind, std::span<float> source, std::span<float> result) = 0;
};

// All candidates of a kind, each with its best settings; none if why_no_mpi_peers returns a reason. Collective. The
// first two are for groups of two ranks.
[[nodiscard]] std::vector<std::unique_ptr<OneWayPeer>> mpi_one_way_peers(const Group& group);
[[nodiscard]] std::vector<std::unique_ptr<ExchangePeer>> mpi_exchange_peers(const Group& group);
[[nodiscard]] std::vector<std::unique_ptr<CollectivePeer>> mpi_collective_peers(const Group& group);

}  // namespace onehop::bench
