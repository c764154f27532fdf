// The MPI candidates with which `onehop bench` compares onehop: the same work in plain MPI, as a careful user of MPI
// would write it. They use the MPI that onehop has loaded, on its world communicator, which must have the group's
// ranks.
//
// All ranks call collective functions in the same order. The caller writes the source before each send and reads the
// result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/group.h"
#include "onehop/schedule.h"

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

// One round of a schedule between arrays, the way users of MPI do a halo. Transfers inside a rank are copied by loops.
class HaloPeer {
 public:
  virtual ~HaloPeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Prepares the first round of `schedule`, the whole one or this rank's part. `arrays[i]` is the memory of its array i
  // and must stay valid until the next prepare() or the end. Every message is `enlargement` times as long as its data,
  // as in QWS, which makes messages long without more computing; candidates that do not pack by hand accept only 1.
  // Collective.
  virtual void prepare(const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
                       std::int64_t enlargement = 1) = 0;
  virtual void start() = 0;   // packs if necessary, and sends
  virtual void finish() = 0;  // waits, and unpacks if necessary
  void run() {
    start();
    finish();
  }
};

// Returns why there is no MPI to compare with, the same on every rank: there is none, or its ranks are not the group's.
// Empty if there is one. Loads and initialises MPI if necessary. Collective.
[[nodiscard]] std::string why_no_mpi_peers(const Group& group);

// A sum of float32 over all ranks.
class AllReducePeer {
 public:
  virtual ~AllReducePeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "MPI_Allreduce", "MPI_Allreduce_init"
  // The arrays must stay valid until the next prepare() or the end. They may be the same. Collective.
  virtual void prepare(std::span<const float> source, std::span<float> result) = 0;
  virtual void run() = 0;
};

enum class CollectiveKind : std::uint8_t { reduce_scatter, allgather, broadcast, all_to_all };

// These operations on arrays of float32; bench/collective.h has their lengths.
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
// Any number of ranks. "derived datatypes, persistent", "packed, Isend/Irecv", "packed, persistent", "neighbour
// collective"
[[nodiscard]] std::vector<std::unique_ptr<HaloPeer>> mpi_halo_peers(const Group& group);
// The candidate of that list with this name.
[[nodiscard]] std::unique_ptr<HaloPeer> mpi_halo_peer(const Group& group, std::string_view name);

[[nodiscard]] std::vector<std::unique_ptr<AllReducePeer>> mpi_allreduce_peers(const Group& group);
[[nodiscard]] std::vector<std::unique_ptr<CollectivePeer>> mpi_collective_peers(const Group& group);

// MPI_COMM_WORLD, for the plain-MPI versions of solvers and for synchronising benchmarks.
class MpiWorld {
 public:
  // Throws Error if there is no MPI.
  [[nodiscard]] static std::unique_ptr<MpiWorld> make();
  virtual ~MpiWorld() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual double allreduce_sum(double value) = 0;  // MPI_Allreduce
  virtual void allreduce_sum(std::span<double> values) = 0;      // in place, at most 64
  virtual void barrier() = 0;
  // "Open MPI 5.0.11"
  [[nodiscard]] virtual std::string version() const = 0;
};

}  // namespace onehop::bench
