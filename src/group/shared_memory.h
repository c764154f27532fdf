// Memory that other processes of this machine can map. It has no name (memory_file.h), so nothing is left behind. A
// peer opens it as /proc/PID/fd/N of the rank that made it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace onehop::detail {

// Counts how often this process has made shared memory or unmapped memory that it had made.
inline constinit std::atomic<std::uint64_t> shared_memory_changes{1};

// A handle: copies share one mapping, which ends with the last of them.
class SharedMemory {
 public:
  // Makes zeroed memory and backs it at once, so that a shortage is an Error here and not a crash later. `what` names
  // it in errors. Calls `backed`, if given, with the number of bytes of each part that has just been backed.
  [[nodiscard]] static SharedMemory create(std::int64_t bytes, const std::string& what,
                                           const std::function<void(std::int64_t)>& backed = {});
  // The same without backing: back() adds it, or else the system does, page by page on the first write.
  [[nodiscard]] static SharedMemory create_unbacked(std::int64_t bytes, const std::string& what);
  // Backs memory made by this process. Returns false if it already is. Throws Error if memory is short.
  bool back(const std::string& what) const;

  // Maps memory that process `pid` made and has at descriptor `fd`. Memory of this process itself (ranks that are
  // threads) is returned at its present address. Throws Error with the system's reason, or if it is not memory as
  // `create` makes it: of this user, of at least `least_bytes`, sealed so that it cannot become shorter. If `low_bits`
  // is not 0, the address agrees with it in the lower 28 bits, down to whole pages, where that is possible. If the
  // descriptor has vanished, open() returns after the process has ended, so that the caller finds it lost.
  [[nodiscard]] static SharedMemory open(pid_t pid, int fd, std::int64_t least_bytes, std::uintptr_t low_bits = 0);
  // The same without a wait: where ranks end one after the other, the caller finds the one that has ended first.
  [[nodiscard]] static SharedMemory open_at_once(pid_t pid, int fd, std::int64_t least_bytes);
  // The same by its path, "/proc/PID/fd/N".
  [[nodiscard]] static SharedMemory open(const std::string& path, std::int64_t least_bytes,
                                         std::uintptr_t low_bits = 0);
  // The same by a descriptor of this process, which is always closed. `where` names it in errors.
  [[nodiscard]] static SharedMemory adopt(int fd, std::int64_t least_bytes, const std::string& where,
                                          std::uintptr_t low_bits = 0);

  // Returns the memory that this process made with this descriptor; empty if there is none.
  [[nodiscard]] static SharedMemory own_memory(int fd);
  // Returns the memory made by this process that contains all of `bytes`; empty if there is none.
  [[nodiscard]] static SharedMemory holding(std::span<const std::byte> bytes);

  [[nodiscard]] std::byte* data() const noexcept { return mapping_ ? mapping_->data : nullptr; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return mapping_ ? mapping_->bytes : 0; }
  // The descriptor under which peers find it; -1 for memory of another process.
  [[nodiscard]] int fd() const noexcept { return mapping_ ? mapping_->fd : -1; }

 private:
  struct Mapping {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int fd = -1;
    bool backed = false;
    pid_t process = 0;  // the process that made it
    Mapping() = default;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();
  };
  struct OwnMappings;
  void back_pages(const std::string& what, const std::function<void(std::int64_t)>& backed = {}) const;
  std::shared_ptr<Mapping> mapping_;
};

}  // namespace onehop::detail
