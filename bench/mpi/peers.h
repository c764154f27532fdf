// The MPI candidates that `onehop bench` compares onehop with: the same work in plain MPI, each written as a careful user of
// MPI would write it. They use the MPI that onehop itself found and loaded, on its world communicator, which must be the group.
//
// Everything that says "collective" is called by both ranks in the same order. The caller dirties the source before each send and
// reads the result.
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

// One message at a time, strictly to and fro: after a send() comes a receive(), and the other way round.
class OneWayPeer {
 public:
  virtual ~OneWayPeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "Send/Recv", "Put + flush + flag", ...
  // Collective. Before the first message, and again for another size.
  virtual void prepare(std::int64_t bytes) = 0;
  // Where the caller writes the message before send(). The same memory until the next prepare().
  [[nodiscard]] virtual std::span<std::byte> source() = 0;
  virtual void send() = 0;
  // Waits for the next message; it lies there until this rank's next send().
  [[nodiscard]] virtual std::span<const std::byte> receive() = 0;
};

// Several messages of equal size each way at once.
class ExchangePeer {
 public:
  virtual ~ExchangePeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Collective. Before the first exchange, and again for another case.
  virtual void prepare(std::int64_t bytes, int messages) = 0;
  [[nodiscard]] virtual std::span<std::byte> source(int message) = 0;
  // Both ranks call it. Waits until all messages have come and the sources may be written again.
  virtual void exchange() = 0;
  // Where the last exchange left a message; valid until the next one.
  [[nodiscard]] virtual std::span<const std::byte> result(int message) const = 0;
};

// One round of a schedule between arrays, the way users of MPI do a halo. Transfers inside a rank are copied by loops.
class HaloPeer {
 public:
  virtual ~HaloPeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Collective. `schedule` is the whole or this rank's part; its first round is what runs. `arrays[i]` is the memory of its array i
  // and must stay until the next prepare() or the end.
  // Every message is sent `enlargement` times as long as its data (as QWS does to make messages large without more computing;
  // only for candidates that pack by hand: the others take 1).
  virtual void prepare(const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
                       std::int64_t enlargement = 1) = 0;
  virtual void start() = 0;   // packs if need be, and sends
  virtual void finish() = 0;  // waits, and unpacks if need be
  void run() {
    start();
    finish();
  }
};

// Why MPI cannot be compared with, the same on every rank; empty if it can: none is here, or its ranks are not those of the
// group. Collective: MPI is loaded and initialised if it is not yet.
[[nodiscard]] std::string why_no_mpi_peers(const Group& group);

// A sum of float32 over all ranks.
class AllReducePeer {
 public:
  virtual ~AllReducePeer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "MPI_Allreduce", "MPI_Allreduce_init"
  // Collective. The arrays must stay until the next prepare() or the end.
  virtual void prepare(std::span<const float> source, std::span<float> result) = 0;
  virtual void run() = 0;
};

// All candidates of a kind, best settings each; none where why_no_mpi_peers has a reason. Collective. The first two are for groups
// of two ranks.
[[nodiscard]] std::vector<std::unique_ptr<OneWayPeer>> mpi_one_way_peers(const Group& group);
[[nodiscard]] std::vector<std::unique_ptr<ExchangePeer>> mpi_exchange_peers(const Group& group);
// Any number of ranks. "derived datatypes, persistent", "packed, Isend/Irecv", "packed, persistent", "neighbour collective"
[[nodiscard]] std::vector<std::unique_ptr<HaloPeer>> mpi_halo_peers(const Group& group);
// The one of them with this name.
[[nodiscard]] std::unique_ptr<HaloPeer> mpi_halo_peer(const Group& group, std::string_view name);

[[nodiscard]] std::vector<std::unique_ptr<AllReducePeer>> mpi_allreduce_peers(const Group& group);

// For the solvers' plain-MPI versions and the benchmarks' own clockwork, over MPI_COMM_WORLD.
class MpiWorld {
 public:
  // Throws onehop::Error where there is no MPI.
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
