// Notices accesses to some bytes of this process's memory, whichever instruction makes them: the pages that hold the
// bytes become inaccessible, and a handler of SIGSEGV lets every access to them through and looks where it went.
// For programs that are being debugged; an access to such a page takes microseconds.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onehop::detail {

// Bytes [begin, end) of memory.
struct MemoryRange {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
};

class PageGuard {
 public:
  // `bytes` are in order of their addresses and do not overlap. `inside` is memory of which whole pages may be made
  // inaccessible, in order; bytes on other pages are not watched.
  PageGuard(std::vector<MemoryRange> bytes, std::span<const MemoryRange> inside);
  ~PageGuard();
  PageGuard(const PageGuard&) = delete;
  PageGuard& operator=(const PageGuard&) = delete;

  // From close() on accesses are noticed, from open() on not.
  void close();
  void open();

  struct Access {
    const std::byte* at = nullptr;  // null: none
    bool writes = false;
  };
  // The first access to any of the bytes since the last call.
  [[nodiscard]] Access take_access() noexcept;

  // For the handlers. Whether the page is one of this guard.
  [[nodiscard]] bool has_page(const std::byte* page) const noexcept;
  void note(const std::byte* at, bool writes) noexcept;

 private:
  std::vector<MemoryRange> bytes_;
  std::vector<MemoryRange> pages_;  // neighbouring pages joined
  bool closed_ = false;
  std::atomic<const std::byte*> found_{nullptr};
  std::atomic<bool> found_writes_{false};
};

}  // namespace onehop::detail
