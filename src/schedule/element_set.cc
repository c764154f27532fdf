#include "src/schedule/element_set.h"

#include <algorithm>
#include <bit>
#include <new>

namespace onehop::detail {

namespace {

constexpr std::uint64_t bits = 64;
// 8 MiB. calloc gets blocks of this size from the system, which provides zeroed pages on first touch.
constexpr std::uint64_t max_bits_per_block = std::uint64_t{1} << 26U;

}  // namespace

ElementSet::ElementSet(std::int64_t elements)
    : block_bits_(std::bit_ceil(std::clamp(static_cast<std::uint64_t>(elements), bits, max_bits_per_block))) {}

ElementSet::Word* ElementSet::block(std::uint64_t number) {
  if (last_block_ != nullptr && number == last_number_) return last_block_;
  auto& words = blocks_[number];
  if (!words) {
    words.reset(static_cast<Word*>(std::calloc(block_bits_ / bits, sizeof(Word))));
    if (!words) throw std::bad_alloc();
  }
  last_number_ = number;
  last_block_ = words.get();
  return last_block_;
}

template <class Visit>
void ElementSet::for_each_word(const Slice& slice, Visit&& visit) {
  const auto block_shift = static_cast<unsigned>(std::countr_zero(block_bits_));
  slice.for_each_run([&](std::int64_t begin, std::int64_t count) {
    auto at = static_cast<std::uint64_t>(begin);
    auto left = static_cast<std::uint64_t>(count);
    while (left > 0) {
      const std::uint64_t bit = at % bits;
      const std::uint64_t length = std::min(left, bits - bit);
      const Word ones = length == bits ? ~Word{0} : (Word{1} << length) - 1;
      Word& word = block(at >> block_shift)[(at & (block_bits_ - 1)) / bits];
      visit(word, ones << bit, static_cast<std::int64_t>(at - bit));
      at += length;
      left -= length;
    }
  });
}

std::int64_t ElementSet::insert(const Slice& slice, ElementSet* repeated) {
  std::int64_t first = none;
  for_each_word(slice, [&](Word& word, Word mask, std::int64_t base) {
    Word already = word & mask;
    word |= mask;
    if (already == 0) return;
    if (first == none) first = base + std::countr_zero(already);
    for (; repeated != nullptr && already != 0; already &= already - 1) {
      repeated->insert(Slice::range(base + std::countr_zero(already), 1));
    }
  });
  return first;
}

std::int64_t ElementSet::first_inside(const Slice& slice) {
  std::int64_t first = none;
  for_each_word(slice, [&](const Word& word, Word mask, std::int64_t base) {
    if ((word & mask) != 0 && first == none) first = base + std::countr_zero(word & mask);
  });
  return first;
}

std::int64_t ElementSet::first_missing(const Slice& slice) {
  std::int64_t first = none;
  for_each_word(slice, [&](const Word& word, Word mask, std::int64_t base) {
    if ((~word & mask) != 0 && first == none) first = base + std::countr_zero(~word & mask);
  });
  return first;
}

void ElementSet::erase(const Slice& slice) {
  for_each_word(slice, [](Word& word, Word mask, std::int64_t) { word &= ~mask; });
}

}  // namespace onehop::detail
