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
    constexpr std::size_t line = 64;
    constexpr std::size_t large = std::size_t{1} << 21;
    const std::size_t bytes = count * sizeof(T);
    const std::size_t align = bytes >= large / 2 ? large : line;
    const std::size_t whole = (bytes / align + 1) * align;
    void* memory = std::aligned_alloc(align, whole);
    if (memory == nullptr) throw std::bad_alloc();
    data_.reset(static_cast<T*>(memory));
    if (align == large) madvise(memory, whole, MADV_HUGEPAGE);  // may fail: then the memory is only slower
    std::memset(memory, 0, bytes);
  }

  [[nodiscard]] T* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data_.get(), count_}; }

 private:
  struct Free {
    void operator()(T* memory) const noexcept { std::free(memory); }
  };
  std::size_t count_ = 0;
  std::unique_ptr<T, Free> data_;
};

}  // namespace onehop::lattice::detail
