// A `Group` is the ranks of a run: who I am, who shares memory with me, and one bootstrap operation, an all-gather of
// bytes. Everything collective here is for set-up; data moves through channels and plans.
//
// Making a group, `split`, `barrier`, `allgather` are collective: every rank of the group calls them, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onehop/error.h"

namespace onehop {

namespace detail {
struct GroupState;
}

// What every rank gave, in rank order.
using Gathered = std::vector<std::vector<std::byte>>;

// A user's own all-gather: called by every rank of the group with its bytes (lengths may differ), returns everybody's.
using AllGather = std::function<Gathered(std::span<const std::byte>)>;

// Memory that the peers of a group on the same machine can reach directly. Lives until the last copy of this handle is gone.
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
  // The group of everything that the launcher of this program started: `onehop launch`, mpiexec, srun, torchrun; one
  // rank when there is no launcher. Throws Error when a launcher says N ranks but this rank finds itself alone.
  // Initialises MPI if an MPI launcher started the program and nobody has done so yet. The group is made by the first call,
  // which is collective; every further one returns the same. It stays open until the program ends with status 0.
  [[nodiscard]] static Group world();

  // Gives up world()'s own hold of its group, which is closed then once no copy of it, no channel and no plan is left: for
  // programs that want to leave before they end. Without a world() before it does nothing.
  static void close_world() noexcept;

  // For interpreters, which close what they have before their exit status is known: groups that are closed from now on leave in
  // order only if the process ends with status 0. To their peers they are lost else.
  static void process_is_ending() noexcept;

  // One rank, no launcher.
  [[nodiscard]] static Group alone();

  // From any all-gather of bytes. Ranks may be processes or threads of one process. Every call of it is checked: BadInput,
  // then and later, where it returns anything else than one entry per rank with that rank's bytes.
  [[nodiscard]] static Group from_allgather(int rank, int size, AllGather allgather);

  // From an MPI communicator of any MPI that is loaded in this process: `comm` points to the MPI_Comm handle. The
  // communicator is duplicated. MPI must be initialised. (Include onehop/mpi.h for a typed wrapper.)
  [[nodiscard]] static Group from_mpi(const void* comm);

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;

  // How the group came to be: "launcher", "mpi", "torchrun", "srun", "alone", "allgather", "split".
  [[nodiscard]] const std::string& origin() const noexcept;

  // Whether `rank` is on this machine and its memory can be mapped here.
  [[nodiscard]] bool shares_memory(int rank) const;

  // The ranks that share memory with this one, itself included.
  [[nodiscard]] std::vector<int> neighbours_in_memory() const;

  void barrier() const;
  [[nodiscard]] Gathered allgather(std::span<const std::byte> mine) const;

  // Ranks that give the same colour form a new group, ordered by (key, old rank). A negative colour belongs to none: an
  // empty optional comes back as a group for which `valid()` is false.
  [[nodiscard]] Group split(int colour, int key) const;
  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }

  // Memory that peers can reach; zeroed, page-aligned. Not collective. Throws Error when the machine has not enough,
  // saying how much there is.
  [[nodiscard]] SharedArray allocate(std::int64_t bytes) const;

  // Limit in seconds for every wait in this group (0: none, the default; the environment's ONEHOP_TIMEOUT sets another
  // default). Dead peers are noticed without it.
  void set_timeout(double seconds) const;
  [[nodiscard]] double timeout() const noexcept;

  // For onehop's own parts.
  [[nodiscard]] const std::shared_ptr<detail::GroupState>& state() const noexcept { return state_; }
  Group() = default;
  explicit Group(std::shared_ptr<detail::GroupState> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<detail::GroupState> state_;
};

// Bytes of memory that this process can still get: the least of the system's and its control groups' limits.
[[nodiscard]] std::int64_t available_memory();

// Called about every 20 ms in long waits; may throw to end the wait (the Python package looks for signals here).
using InterruptCheck = void (*)();
void set_interrupt_check(InterruptCheck check) noexcept;

}  // namespace onehop
