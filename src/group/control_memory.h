// The shared memory of the bootstrap all-gather between ranks of one machine. The launcher creates it (for a split, the
// lowest rank does), and every rank maps it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "src/group/bootstrap.h"
#include "src/group/shared_memory.h"

namespace onehop::detail {

class ControlMemory {
 public:
  // Makes control memory for `ranks` ranks. It lives as long as this object or any rank that joined.
  [[nodiscard]] static ControlMemory create(int ranks);
  // The path by which ranks open it: "/proc/PID/fd/N".
  [[nodiscard]] std::string path() const;
  // The descriptor of the memory in this process.
  [[nodiscard]] int fd() const { return memory_.fd(); }
  // For the launcher: records that the process of `rank` has ended, even if it never joined.
  void tell_ended(int rank);
  // Tells all ranks that rank 0 gives up because this rank has not joined.
  void tell_missing(int rank);

 private:
  SharedMemory memory_;
};

// Joins as `rank` of `ranks`. Throws Mismatch if the memory was made for another number of ranks or the rank is taken,
// Error if the memory is gone. Waits also end, with PeerLost, when process `launcher` ends; 0: no launcher.
[[nodiscard]] std::unique_ptr<Bootstrap> join_control_memory(const std::string& path, int rank, int ranks,
                                                             pid_t launcher);
// The same with memory that is already mapped; `where` names it in errors.
[[nodiscard]] std::unique_ptr<Bootstrap> join_control_memory(SharedMemory memory, const std::string& where, int rank,
                                                             int ranks, pid_t launcher);

// Throws Error if this rank does not see the process numbers of its launcher, whose space of them is `space`.
void check_space(int rank, pid_t launcher, std::uint64_t space);

// Bytes of control memory for `ranks` ranks.
[[nodiscard]] std::int64_t control_memory_bytes(int ranks);

}  // namespace onehop::detail
