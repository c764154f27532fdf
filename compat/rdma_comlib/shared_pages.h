// Pages of a receive buffer that the sender of its messages writes itself, so that nobody copies them out of a slot. The buffer is the
// program's: only pages that belong to it as a whole are exchanged for shared ones, at the same addresses, and exchanged back
// before the program frees it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace onehop::rdma_comlib_door {

// Where a peer finds shared pages, and what part of the buffer they are. No bytes: there are none.
struct PagesPlace {
  pid_t pid = 0;
  int fd = -1;
  std::size_t at = 0;
  std::size_t bytes = 0;
  std::size_t message = 0;  // bytes of the whole
};

// The receiver's side.
class SharedPages {
 public:
  SharedPages() = default;
  // None where the buffer holds no whole page, is not ordinary memory of this process (shared, or of a file), or where the system
  // or ONEHOP_SHARE_BUFFERS=0 says no. What the buffer holds stays.
  explicit SharedPages(std::span<std::byte> buffer);
  ~SharedPages();
  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&& other) noexcept;

  [[nodiscard]] const PagesPlace& place() const noexcept { return place_; }
  // The peer has them, and needs the file no more.
  void close_file() noexcept;

 private:
  std::byte* pages_ = nullptr;
  PagesPlace place_;
};

// The sender's side.
class PeersPages {
 public:
  PeersPages() = default;
  // None where there are none, or where they cannot be reached.
  explicit PeersPages(const PagesPlace& place);
  ~PeersPages();
  PeersPages(PeersPages&& other) noexcept;
  PeersPages& operator=(PeersPages&& other) noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return pages_; }
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* pages_ = nullptr;
  std::size_t at_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace onehop::rdma_comlib_door
