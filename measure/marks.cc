#include "measure/marks.h"

#include <algorithm>
#include <cstring>

#include "onehop/error.h"

namespace onehop::measure {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// The bits of an ordinary float64, as codecs expect.
std::uint64_t number_from_1_to_2(std::uint64_t number) noexcept {
  return std::uint64_t{0x3ff} << 52 | (number & 0xffffffffU) << 20;
}

template <class Row, class Visit>
void for_each(const std::vector<Row>& rows, const Visit& visit) {
  constexpr std::int64_t ahead = 16;
  for (const Row& row : rows) {
    std::byte* place = row.first;
    for (std::uint64_t i = 0; i < row.count; ++i, place += row.step) {
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(place) +
                                                       static_cast<std::uintptr_t>(ahead * row.step)));
      visit(place, row.number + i);
    }
  }
}

// Element numbers of a slice in its order: the first of every run, and then one in every 64 bytes.
std::vector<std::int64_t> one_a_line(const Slice& slice, std::int64_t element_bytes) {
  const std::int64_t step = std::max<std::int64_t>(1, 64 / element_bytes);
  std::vector<std::int64_t> chosen;
  std::int64_t position = 0;
  slice.for_each_run([&](std::int64_t, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += step) chosen.push_back(position + i);
    position += count;
  });
  return chosen;
}

}  // namespace

Marks::Marks(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays) {
  for (const Transfer& transfer : schedule.rounds.at(0).transfers) {
    if (transfer.from.rank == transfer.to.rank) continue;
    const std::vector<std::int64_t> chosen =
        one_a_line(transfer.from.slice, schedule.arrays[at(transfer.from.array)].element_bytes);
    if (transfer.from.rank == rank) add(out_, schedule, transfer.from, chosen, arrays);
    if (transfer.to.rank == rank) add(in_, schedule, transfer.to, chosen, arrays);
  }
  // The rows of two faces may share lines.
  std::ranges::sort(out_, {}, &Row::first);
  std::ranges::sort(in_, {}, &Row::first);
}

void Marks::dirty() noexcept {
  ++written_;
  for_each(out_, [this](std::byte* place, std::uint64_t number) {
    *reinterpret_cast<volatile std::uint64_t*>(place) = number_from_1_to_2(written_ + number);
  });
}

void Marks::check(const std::string& candidate) {
  ++checked_;
  std::uint64_t wrong = 0;
  for_each(in_, [&](const std::byte* place, std::uint64_t number) {
    std::uint64_t value;
    std::memcpy(&value, place, sizeof value);
    wrong |= value ^ number_from_1_to_2(checked_ + number);
  });
  if (wrong != 0) [[unlikely]]
    throw Error(candidate + " delivered wrong data in exchange " + std::to_string(checked_));
}

void Marks::read() noexcept {
  ++checked_;
  std::uint64_t sum = 0;
  for_each(in_, [&](const std::byte* place, std::uint64_t) {
    std::uint64_t value;
    std::memcpy(&value, place, sizeof value);
    sum += value;
  });
  sink_ = sum;
}

void Marks::add(std::vector<Row>& rows, const Schedule& schedule, const Place& place,
                const std::vector<std::int64_t>& chosen, std::span<const std::span<std::byte>> arrays) {
  std::vector<std::int64_t> elements;
  place.slice.for_each_run([&](std::int64_t offset, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) elements.push_back(offset + i);
  });
  const std::int64_t element_bytes = schedule.arrays[at(place.array)].element_bytes;
  if (element_bytes < 8)
    throw BadInput("benchmarks of schedules need elements of at least 8 bytes, found " + std::to_string(element_bytes));
  std::uint64_t number = 0;
  for (const std::int64_t i : chosen) {
    std::byte* const mark = arrays[at(place.array)].data() + elements[static_cast<std::size_t>(i)] * element_bytes;
    append(rows, mark, number++);
  }
}

void Marks::append(std::vector<Row>& rows, std::byte* mark, std::uint64_t number) {
  constexpr std::uint64_t longest = 128;  // so that rows of two faces take turns while their lines are in the cache
  if (number > 0 && rows.back().count < longest) {
    Row& row = rows.back();
    const std::int64_t step = mark - (row.first + static_cast<std::int64_t>(row.count - 1) * row.step);
    if (row.count == 1) row.step = step;
    if (step == row.step) {
      ++row.count;
      return;
    }
  }
  rows.push_back({mark, 0, number, 1});
}

}  // namespace onehop::measure
