// Memory of lattice fields: zeroed and aligned to cache lines. Large buffers ask for huge pages, because an operator
// reads more streams at once than the TLB covers with ordinary pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace onehop::lattice::detail {

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count) : count_(count) {
    const std::size_t align = alignment(count);
    const std::size_t whole = bytes_taken(count);
    void* memory = std::aligned_alloc(align, whole);
    if (memory == nullptr) throw std::bad_alloc();
    data_.reset(static_cast<T*>(memory));
    if (align == large) madvise(memory, whole, MADV_HUGEPAGE);  // may fail: then the memory is only slower
    std::memset(memory, 0, count * sizeof(T));
  }

  // The memory that a buffer takes: a large one takes whole huge pages.
  [[nodiscard]] static constexpr std::size_t bytes_taken(std::size_t count) noexcept {
    return (count * sizeof(T) / alignment(count) + 1) * alignment(count);
  }

  [[nodiscard]] T* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data_.get(), count_}; }

 private:
  static constexpr std::size_t large = std::size_t{1} << 21;
  static constexpr std::size_t alignment(std::size_t count) noexcept {
    return count * sizeof(T) >= large / 2 ? large : 64;  // or a cache line
  }

  struct Free {
    void operator()(T* memory) const noexcept { std::free(memory); }
  };
  std::size_t count_ = 0;
  std::unique_ptr<T, Free> data_;
};

}  // namespace onehop::lattice::detail
