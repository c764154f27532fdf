// The space of process numbers (PID namespace) of this process. Containers mostly have one each.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace onehop::detail {

// Its number, which no other space of this machine has; 1 if the system does not tell (there is no /proc).
[[nodiscard]] inline std::uint64_t process_space() noexcept {
  struct stat space{};
  return stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 1;
}

// Whether /proc shows the process numbers of this space. Not so under `unshare -p -f` without --mount-proc.
[[nodiscard]] inline bool proc_is_of_own_space() {
  char number[32] = {};
  const ssize_t length = readlink("/proc/self", number, sizeof number - 1);
  return length <= 0 || std::to_string(getpid()) == number;
}

}  // namespace onehop::detail
