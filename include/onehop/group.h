// A `Group` is a set of ranks, like an MPI communicator. It knows this rank, the ranks that share memory with it, and
// one bootstrap operation, an all-gather of bytes. Its collective functions are for set-up only; data moves through
// channels and plans.
//
// Making a group, `split`, `barrier` and `allgather` are collective: every rank of the group calls them in the same
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "onehop/gathered.h"

namespace onehop {

namespace detail {
struct GroupState;
}

// An all-gather supplied by the user. Every rank calls it with its bytes (lengths may differ); it returns those of all
// ranks.
using AllGather = std::function<Gathered(std::span<const std::byte>)>;

// Makes the all-gather of some ranks, which know each other by `name`: that of the whole group, "", and of each part
// that is split from it. `rank` and `size` are those in the part. An all-gather that waits calls `gone`, which returns
// a rank of the part that is known to have ended or to have left, or -1; it throws PeerLost if that one is missing.
using AllGatherMaker = std::function<AllGather(const std::string& name, int rank, int size, std::function<int()> gone)>;

// Memory that the ranks of a group on the same machine can access directly. It lives as long as a copy of this handle.
class SharedArray {
 public:
  SharedArray() = default;
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  friend class Group;
  std::shared_ptr<void> owner_;
  std::span<std::byte> bytes_;
};

class Group {
 public:
  // Returns the group of all ranks that the launcher started (`onehop launch`, mpiexec, srun, torchrun), or a group of
  // one rank if there is no launcher. Throws Error if the launcher announces several ranks but this rank cannot reach
  // the others. Initialises MPI if an MPI launcher started the program and MPI is not yet initialised. The first call
  // is collective and makes the group; later calls return the same group. It stays open until the program ends with
  // status 0.
  [[nodiscard]] static Group world();

  // Drops the reference that world() holds. The group closes as soon as no copy of it, no channel and no plan is left.
  // For programs that want to leave the group before they end. Does nothing if world() was never called.
  static void close_world() noexcept;

  // For interpreters, which destroy their objects before their exit status is known. Groups that close after this call
  // count as closed in order only if the process ends with status 0; otherwise the peers see this rank as lost.
  static void process_is_ending() noexcept;

  // Returns a group of one rank, without a launcher.
  [[nodiscard]] static Group alone();

  // Makes a group from an all-gather of bytes. Ranks may be processes, or threads of one process. Every result of
  // `allgather` is checked: this function and later collective calls throw BadInput unless it has one entry per rank
  // with that rank's bytes.
  [[nodiscard]] static Group from_allgather(int rank, int size, AllGather allgather);
  // The same for a group that can be split although its ranks are on several machines.
  [[nodiscard]] static Group from_allgather(int rank, int size, const AllGatherMaker& maker);
  // nullptr would fit both.
  static Group from_allgather(int rank, int size, std::nullptr_t) = delete;

  // Makes a group from a communicator of the MPI library that is loaded in this process. `comm` points to the MPI_Comm
  // handle; the communicator is duplicated. MPI must be initialised. onehop/mpi.h has a typed wrapper. Throws BadInput
  // for MPI_COMM_NULL, an intercommunicator, or a handle that MPI refuses.
  [[nodiscard]] static Group from_mpi(const void* comm);

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;

  // How the group was made: "launcher", "mpi", "pmix", "torchrun", "srun", "alone", "allgather", "split".
  [[nodiscard]] const std::string& origin() const noexcept;

  // Whether `rank` runs on this machine and shares memory with this rank. Throws BadInput for a rank outside the group.
  [[nodiscard]] bool shares_memory(int rank) const;

  // The ranks that share memory with this rank, itself included, in ascending order.
  [[nodiscard]] std::vector<int> local_ranks() const;

  // A rank that has died, closed its group or cannot be reached, as far as this rank knows without waiting; -1: none.
  [[nodiscard]] int gone_rank() const;

  // A rank as error messages name it: "rank 2 (process 135 on node1)"; without the machine if all ranks are on one.
  // Throws BadInput for a rank outside the group.
  [[nodiscard]] std::string name_of(int rank) const;

  void barrier() const;
  [[nodiscard]] Gathered allgather(std::span<const std::byte> mine) const;

  // Splits the group as MPI_Comm_split does: ranks that pass the same color form a new group, ordered by (key, rank in
  // this group). A rank that passes a negative color joins no group; its result has valid() == false.
  [[nodiscard]] Group split(int color, int key) const;
  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }

  // Allocates memory that the other ranks of this machine can access: zeroed, page-aligned. Not collective. Throws
  // Error with the available amount if the machine has too little.
  [[nodiscard]] SharedArray allocate(std::int64_t bytes) const;

  // Sets the time limit in seconds of every wait in this group. 0 means none and is the default, unless the environment
  // variable ONEHOP_TIMEOUT sets another one. Dead peers are noticed without a limit. Throws BadInput for a negative
  // number.
  void set_timeout(double seconds) const;
  [[nodiscard]] double timeout() const noexcept;

  // Gives the group up, from any thread. Waits of this rank in this group throw Error, and waits of the other ranks of
  // this machine throw PeerLost, which names this rank. Groups that were split from this one are not affected. Later
  // steps in the group throw as soon as they wait; the group can only be closed.
  void abort() const noexcept;

  // For internal use.
  [[nodiscard]] const std::shared_ptr<detail::GroupState>& state() const noexcept { return state_; }
  Group() = default;
  explicit Group(std::shared_ptr<detail::GroupState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<detail::GroupState> state_;
};

// Bytes of memory that this process can still allocate: the smallest of the limits of the system and its control
// groups.
[[nodiscard]] std::int64_t available_memory();

// Sets a function that long waits call about every 20 ms. It may throw to end the wait; the Python package checks for
// signals in it.
using InterruptCheck = void (*)();
void set_interrupt_check(InterruptCheck check) noexcept;

}  // namespace onehop
