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
  // New control memory for `ranks` ranks. It lives as long as this object or any rank that joined.
  [[nodiscard]] static ControlMemory create(int ranks);
  // Where ranks find it: "/proc/PID/fd/N".
  [[nodiscard]] std::string path() const;
  // The descriptor of this process under which it is open.
  [[nodiscard]] int fd() const { return memory_.fd(); }
  // For a launcher, which knows it first, and even of a rank that never joined: its process has ended.
  void tell_ended(int rank);

 private:
  SharedMemory memory_;
};

// Joins as `rank` of `ranks`. Throws Mismatch when the memory was made for another number of ranks or the rank is
// taken, Error when it is gone. `launcher`: the process whose end also ends the waits; 0: none.
[[nodiscard]] std::unique_ptr<Bootstrap> join_control_memory(const std::string& path, int rank, int ranks,
                                                             pid_t launcher);
// The same with memory that is mapped already; `where` names it in errors.
[[nodiscard]] std::unique_ptr<Bootstrap> join_control_memory(SharedMemory memory, const std::string& where, int rank,
                                                             int ranks, pid_t launcher);

// Bytes of control memory for so many ranks.
[[nodiscard]] std::int64_t control_memory_bytes(int ranks);

}  // namespace onehop::detail
