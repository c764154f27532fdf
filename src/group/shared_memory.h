// Memory that other processes of this machine can map. It has no name (memfd), so nothing is left behind; a peer opens
// it as /proc/PID/fd/N of the rank that made it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace onehop::detail {

// A handle: copies share one mapping, which ends with the last of them.
class SharedMemory {
 public:
  // New zeroed memory, backed at once so that a shortage is an Error here and not a crash later. `what` names it there.
  // `backed`, if given, is called with the bytes that have just been backed, a part after the other.
  [[nodiscard]] static SharedMemory create(std::int64_t bytes, const std::string& what,
                                           const std::function<void(std::int64_t)>& backed = {});
  // The same without memory behind it: that comes with back(), or else page by page as somebody writes there.
  [[nodiscard]] static SharedMemory create_unbacked(std::int64_t bytes, const std::string& what);
  // Of memory made by this process: false if that was done before. Throws Error where there is not enough.
  bool back(const std::string& what) const;

  // Maps memory that process `pid` made and has at descriptor `fd`. Memory of this very process (ranks that are
  // threads) comes back at the address it already has. Throws Error with the system's reason, or where it is not what
  // `create` makes: memory of this user, of at least `least_bytes`, sealed so that it cannot become shorter.
  // `low_bits`, if not 0: the address is to agree with it in the lower 28 bits, down to whole pages, if that can be.
  [[nodiscard]] static SharedMemory open(pid_t pid, int fd, std::int64_t least_bytes, std::uintptr_t low_bits = 0);
  // The same by its path, "/proc/PID/fd/N".
  [[nodiscard]] static SharedMemory open(const std::string& path, std::int64_t least_bytes,
                                         std::uintptr_t low_bits = 0);
  // The same by a descriptor of this process, which is closed in any case. `where` names it in errors.
  [[nodiscard]] static SharedMemory adopt(int fd, std::int64_t least_bytes, const std::string& where,
                                          std::uintptr_t low_bits = 0);

  // The memory made by this process in which all of `bytes` lies; empty if there is none.
  [[nodiscard]] static SharedMemory holding(std::span<const std::byte> bytes);

  [[nodiscard]] std::byte* data() const noexcept { return mapping_ ? mapping_->data : nullptr; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return mapping_ ? mapping_->bytes : 0; }
  // The descriptor under which peers find it; -1 for a mapping of somebody else's.
  [[nodiscard]] int fd() const noexcept { return mapping_ ? mapping_->fd : -1; }

 private:
  struct Mapping {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int fd = -1;
    bool backed = false;
    pid_t process = 0;  // that made it
    Mapping() = default;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();
  };
  struct OwnMappings;
  void back_pages(const std::string& what, const std::function<void(std::int64_t)>& backed = {}) const;
  // What this process made and has at this descriptor; empty if it did not.
  static SharedMemory own_memory(int fd);
  std::shared_ptr<Mapping> mapping_;
};

inline constexpr std::int64_t no_memory_limit = std::numeric_limits<std::int64_t>::max();

// Bytes that this process can still get: of the machine's memory, and of that control group of its that leaves least.
struct MemoryLeft {
  std::int64_t system = no_memory_limit;
  std::int64_t control_group = no_memory_limit;
  std::uint64_t control_group_id = 0;
};
// The environment's ONEHOP_TEST_FREE_MEMORY, in bytes, takes the place of the machine's for tests.
[[nodiscard]] MemoryLeft memory_left();
// Whether it does: then memory that is taken is never seen to be gone.
[[nodiscard]] bool memory_is_pretended();

// The least of those.
[[nodiscard]] std::int64_t available_memory();

// "3 MiB", rounded up
[[nodiscard]] std::string megabytes(std::int64_t bytes);

}  // namespace onehop::detail
