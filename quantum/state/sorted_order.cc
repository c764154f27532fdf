#include "quantum/state/sorted_order.h"

#include <array>
#include <cstddef>

namespace onehop::quantum {
namespace {

constexpr int digit_bits = 11;  // the cache holds a line for each of 2^11 buckets
constexpr std::size_t buckets = std::size_t{1} << digit_bits;

struct Entry {
  std::uint64_t number;
  std::uint32_t place;
};

}  // namespace

// A radix sort, the least significant digit first. Skips digits in which all numbers agree.
std::vector<std::uint32_t> sorted_order(std::span<const std::uint64_t> numbers) {
  std::vector<Entry> entries(numbers.size());
  std::uint64_t differs = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    entries[i] = {numbers[i], static_cast<std::uint32_t>(i)};
    differs |= numbers[i] ^ numbers[0];
  }
  std::vector<Entry> other(entries.size());
  for (int shift = 0; shift < 64 && differs >> shift != 0; shift += digit_bits) {
    if ((differs >> shift & (buckets - 1)) == 0) continue;
    const auto digit = [&](const Entry& entry) { return entry.number >> shift & (buckets - 1); };
    std::array<std::size_t, buckets> next{};
    for (const Entry& entry : entries) ++next[digit(entry)];
    std::size_t sum = 0;
    for (std::size_t& first : next) {
      const std::size_t count = first;
      first = sum;
      sum += count;
    }
    for (const Entry& entry : entries) other[next[digit(entry)]++] = entry;
    entries.swap(other);
  }
  std::vector<std::uint32_t> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = entries[i].place;
  return order;
}

}  // namespace onehop::quantum
