// Memory that other processes of this machine can map. It has no name anywhere (memfd), so nothing can be left behind; a peer
// reaches it through /proc/PID/fd/N of the rank that made it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace onehop::detail {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // New zeroed memory, backed at once so that a shortage is an Error here and not a crash later. `what` names it there.
  [[nodiscard]] static SharedMemory create(std::int64_t bytes, const std::string& what);

  // Maps memory that process `pid` made and has at descriptor `fd`. Throws Error with the system's reason.
  [[nodiscard]] static SharedMemory open(pid_t pid, int fd, std::int64_t bytes);
  // The same by path ("/proc/PID/fd/N").
  [[nodiscard]] static SharedMemory open(const std::string& path, std::int64_t bytes);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  // The descriptor under which peers find it; -1 for a mapping of somebody else's.
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  int fd_ = -1;
};

// Bytes of memory that this process can still get: the least of the system's and its control groups' limits.
[[nodiscard]] std::int64_t available_memory();

}  // namespace onehop::detail
