#include "element_set.h"

#include <algorithm>
#include <bit>
#include <new>

namespace onehop::detail {

namespace {

constexpr std::int64_t bits = 64;
// 8 MiB. calloc takes that from the system, which gives zeroed pages when they are first touched and not before.
constexpr std::int64_t most_bits_per_block = std::int64_t{1} << 26;

}  // namespace

ElementSet::ElementSet(std::int64_t elements)
    : block_shift_(std::bit_width(static_cast<Word>(std::clamp(elements, bits, most_bits_per_block)) - 1)) {}

ElementSet::Word* ElementSet::block(std::int64_t number) {
  if (number == last_number_) return last_block_;
  auto& words = blocks_[number];
  if (!words) {
    words.reset(static_cast<Word*>(std::calloc((std::size_t{1} << block_shift_) / bits, sizeof(Word))));
    if (!words) throw std::bad_alloc();
  }
  last_number_ = number;
  last_block_ = words.get();
  return last_block_;
}

template <class Visit>
void ElementSet::for_each_word(const Slice& slice, Visit&& visit) {
  const std::int64_t in_block = (std::int64_t{1} << block_shift_) - 1;
  slice.for_each_run([&](std::int64_t begin, std::int64_t count) {
    while (count > 0) {
      const std::int64_t bit = begin % bits;
      const std::int64_t here = std::min(count, bits - bit);
      const Word ones = here == bits ? ~Word{0} : (Word{1} << here) - 1;
      Word& word = block(begin >> block_shift_)[(begin & in_block) / bits];
      visit(word, ones << bit, begin - bit);
      begin += here;
      count -= here;
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
