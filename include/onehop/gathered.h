// The result of an all-gather of bytes.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

namespace onehop {

// The contributions of all ranks to an all-gather, in rank order. All of them lie in one block of memory, which nobody
// changes and which copies share. So where ranks are threads of one process, one block serves all of them.
class Gathered {
 public:
  class Iterator;

  Gathered() = default;
  // The contribution of each rank, in rank order. Implicit, so that a function that returns vectors is an AllGather.
  Gathered(std::span<const std::vector<std::byte>> contributions);     // NOLINT(google-explicit-constructor)
  Gathered(const std::vector<std::vector<std::byte>>& contributions);  // NOLINT(google-explicit-constructor)
  Gathered(std::initializer_list<std::vector<std::byte>> contributions);
  // All contributions one behind the other; that of rank r ends before byte `ends[r]`. Throws BadInput if the ends do
  // not ascend to the number of bytes.
  Gathered(std::vector<std::byte> bytes, std::vector<std::size_t> ends);

  // Number of ranks.
  [[nodiscard]] std::size_t size() const noexcept { return block_ == nullptr ? 0 : block_->ends.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  // The contribution of a rank, below size(). Valid as long as a copy of this object.
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t rank) const noexcept {
    const std::size_t begin = (rank == 0 ? 0 : block_->ends[rank - 1]) + skipped_;
    return {block_->bytes.data() + begin, block_->ends[rank] - begin};
  }
  [[nodiscard]] std::span<const std::byte> front() const noexcept { return (*this)[0]; }
  [[nodiscard]] Iterator begin() const noexcept;
  [[nodiscard]] Iterator end() const noexcept;

  // The same contributions without the first `bytes` bytes of each, in the same memory. Throws BadInput if one is
  // shorter.
  [[nodiscard]] Gathered without_first(std::size_t bytes) const;

 private:
  struct Block {
    std::vector<std::byte> bytes;
    std::vector<std::size_t> ends;
  };

  std::shared_ptr<const Block> block_;
  std::size_t skipped_ = 0;  // bytes at the beginning of each contribution
};

class Gathered::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = std::span<const std::byte>;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = value_type;

  Iterator() = default;
  Iterator(const Gathered& all, std::size_t rank) : all_(&all), rank_(rank) {}
  value_type operator*() const { return (*all_)[rank_]; }
  Iterator& operator++() {
    ++rank_;
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++rank_;
    return before;
  }
  bool operator==(const Iterator&) const = default;

 private:
  const Gathered* all_ = nullptr;
  std::size_t rank_ = 0;
};

inline Gathered::Iterator Gathered::begin() const noexcept { return {*this, 0}; }
inline Gathered::Iterator Gathered::end() const noexcept { return {*this, size()}; }

}  // namespace onehop
