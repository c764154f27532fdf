// Shared pages of a receive buffer, which the sender writes directly, so that the receiver copies nothing out of a
// slot. The program owns the buffer. Only pages that lie entirely inside it are replaced by shared ones at the same
// addresses, and private pages replace these again before the program frees the buffer.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>

namespace onehop::compat::rdma_comlib {

// Where a peer finds the shared pages, and which part of the buffer they are. `bytes` is 0 if there are none.
struct PagesPlace {
  pid_t pid = 0;
  int fd = -1;
  std::size_t at = 0;
  std::size_t bytes = 0;
  std::size_t message = 0;  // bytes of the whole buffer
};

// The receiver's side.
class SharedPages {
 public:
  SharedPages() = default;
  // Shares no pages if the buffer contains no whole page, if it is not ordinary private memory of this process (but
  // shared memory or a mapped file), if the system refuses, or if ONEHOP_SHARE_BUFFERS=0. The contents of the buffer
  // stay.
  explicit SharedPages(std::span<std::byte> buffer);
  ~SharedPages();
  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&& other) noexcept;

  [[nodiscard]] const PagesPlace& place() const noexcept { return place_; }
  // To be called when the peer has mapped the pages and no longer needs the file.
  void close_file() noexcept;

 private:
  std::byte* pages_ = nullptr;
  PagesPlace place_;
};

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* pages) const noexcept;
};

// The sender's side.
class PeersPages {
 public:
  PeersPages() = default;
  // Maps no pages if `place` has none, or if they cannot be reached.
  explicit PeersPages(const PagesPlace& place);

  [[nodiscard]] std::byte* data() const noexcept { return pages_.get(); }
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return pages_ == nullptr ? 0 : pages_.get_deleter().bytes; }

 private:
  std::unique_ptr<std::byte, Unmap> pages_;
  std::size_t at_ = 0;
};

}  // namespace onehop::compat::rdma_comlib
