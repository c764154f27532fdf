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

  // Adds the elements of `slice`. Returns the first that was already in the set, including one that the slice names
  // twice, or `none`. Adds all such elements to `repeated`, if given.
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

  // Calls visit(word, mask of the slice's bits, element number of the word's first bit) for each word of `slice`.
  template <class Visit>
  void for_each_word(const Slice& slice, Visit&& visit);
  [[nodiscard]] Word* block(std::uint64_t number);

  std::uint64_t block_bits_;  // a power of two
  std::uint64_t last_number_ = 0;
  Word* last_block_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<Word[], Free>> blocks_;
};

}  // namespace onehop::detail
