// The user of this process, and its space of process numbers (PID namespace). Containers mostly have one each.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "onehop/error.h"

namespace onehop::detail {

// Throws Error in a sandbox that refuses to tell: geteuid() would return the negative number of the error.
[[nodiscard]] inline uid_t own_user() {
  const long user = syscall(SYS_geteuid);
  if (user >= 0) return static_cast<uid_t>(user);
  throw Error(std::string("the system refuses geteuid (") + std::strerror(errno) + "); allow it in this sandbox");
}

// The number of the space, which no other space of this machine has; `no_proc` if there is no /proc that tells it.
inline constexpr std::uint64_t no_proc = 1;
[[nodiscard]] inline std::uint64_t process_space() noexcept {
  struct stat space{};
  return stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : no_proc;
}

// Whether /proc shows the process numbers of this space. Not so under `unshare -p -f` without --mount-proc.
[[nodiscard]] inline bool proc_is_of_own_space() {
  char number[32] = {};
  const ssize_t length = readlink("/proc/self", number, sizeof number - 1);
  return length <= 0 || std::to_string(getpid()) == number;
}

}  // namespace onehop::detail
