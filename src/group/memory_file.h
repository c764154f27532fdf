// The file behind shared memory. It is memfd, which has no name and whose size is sealed. Where the system refuses
// memfd_create (a sandbox, or vm.memfd_noexec=2), it is a file in /dev/shm or the temporary folder that loses its name
// at once, and that only its user may open.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace onehop::detail {

// Makes a file of `bytes` bytes, which no other process shortens, and returns its descriptor. `what` names it in
// errors. Throws Error.
[[nodiscard]] int make_memory_file(std::int64_t bytes, const std::string& what);

// Whether a file of another process is one that make_memory_file() makes, by its status and its seals. A file without
// seals counts only if this process would make one, too.
[[nodiscard]] bool has_fixed_size(int fd, const struct stat& status);

// Whether the text of a link in /proc/PID/fd is that of such a file.
[[nodiscard]] bool is_memory_file(std::string_view link);

}  // namespace onehop::detail
