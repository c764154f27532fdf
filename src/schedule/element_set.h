// A set of element numbers of one array: a sparse bitmap. Its cost is proportional to the inserted elements, not to the
// array, which may be far larger than the memory of this machine.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "onehop/slice.h"

namespace onehop::detail {

class ElementSet {
 public:
  static constexpr std::int64_t none = -1;

  // For element numbers below `elements`.
  explicit ElementSet(std::int64_t elements);

  // Adds the elements of `slice`. Returns the first of them that was there already (also where the slice itself names
  // an element twice), or `none`. Whatever was there already goes into `repeated` too, if given.
  std::int64_t insert(const Slice& slice, ElementSet* repeated = nullptr);

  // The first element of `slice` that is in the set, or `none`.
  [[nodiscard]] std::int64_t first_inside(const Slice& slice);

  // The first element of `slice` that is not in the set, or `none`.
  [[nodiscard]] std::int64_t first_missing(const Slice& slice);

  void erase(const Slice& slice);

 private:
  using Word = std::uint64_t;
  struct Free {
    void operator()(Word* words) const { std::free(words); }
  };

  // Words and bits that `slice` touches, one word after the other: visit(word, mask, number of the word's first bit).
  template <class Visit>
  void for_each_word(const Slice& slice, Visit&& visit);
  [[nodiscard]] Word* block(std::uint64_t number);

  std::uint64_t block_bits_;  // a power of two
  std::uint64_t last_number_ = 0;
  Word* last_block_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<Word[], Free>> blocks_;
};

}  // namespace onehop::detail
