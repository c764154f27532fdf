// A page-aligned buffer for sources and results, with its pages touched like those of all candidates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace onehop::measure {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    constexpr std::size_t page = 4096;
    const std::size_t pages = (bytes_ + page) / page * page;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, pages)));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_.get(), 0, pages);
  }
  [[nodiscard]] std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace onehop::measure
