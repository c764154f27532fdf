#include "bench/packing_lines.h"

#include <algorithm>
#include <cstring>

namespace onehop::bench {
namespace {

std::int64_t element_bytes(const Schedule& schedule, const Place& place) {
  return schedule.arrays[static_cast<std::size_t>(place.array)].element_bytes;
}

}  // namespace

PackingLines::PackingLines(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays) {
  const auto for_each = [&](bool from_here, bool to_here, const auto& visit) {
    for (const Transfer& transfer : schedule.rounds.at(0).transfers) {
      if ((transfer.from.rank == rank) == from_here && (transfer.to.rank == rank) == to_here) visit(transfer);
    }
  };
  const auto bytes = [&](const Place& place) { return place.slice.elements() * element_bytes(schedule, place); };
  std::int64_t crossing = 0;
  for_each(true, false, [&](const Transfer& transfer) { crossing += bytes(transfer.from); });
  for_each(false, true, [&](const Transfer& transfer) { crossing += bytes(transfer.to); });
  slots_.resize(static_cast<std::size_t>(crossing));

  std::byte* slot = slots_.data();
  const auto add_slot = [&](const Place& place, bool writes) {
    add_row(slot, bytes(place), 8, writes);
    slot += bytes(place);
  };
  for_each(true, false, [&](const Transfer& transfer) {
    add_face(schedule, transfer.from, arrays, false);
    add_slot(transfer.from, true);
  });
  for_each(true, true, [&](const Transfer& transfer) {
    add_face(schedule, transfer.from, arrays, false);
    add_face(schedule, transfer.to, arrays, true);
  });
  for_each(false, true, [&](const Transfer& transfer) {
    add_slot(transfer.to, false);
    add_face(schedule, transfer.to, arrays, true);
  });
}

void PackingLines::touch() noexcept {
  std::uint64_t sum = 0;
  for (const Row& row : rows_) {
    std::byte* at = row.first;
    if (row.writes) {
      for (std::int64_t i = 0; i < row.count; ++i, at += row.step) *reinterpret_cast<volatile std::uint64_t*>(at) = 0;
    } else {
      for (std::int64_t i = 0; i < row.count; ++i, at += row.step) {
        std::uint64_t value;
        std::memcpy(&value, at, sizeof value);
        sum += value;
      }
    }
  }
  sink_ = sum;
}

// A row of elements, `stride` bytes apart, that takes `bytes` bytes from its first to the end of its last element.
void PackingLines::add_row(std::byte* first, std::int64_t bytes, std::int64_t stride, bool writes) {
  constexpr std::int64_t line = 64;
  const std::int64_t step = stride >= line ? stride : line / stride * stride;
  if (bytes > 0) rows_.push_back({first, (bytes + step - 1) / step, step, writes});
}

void PackingLines::add_face(const Schedule& schedule, const Place& place, std::span<const std::span<std::byte>> arrays,
                            bool writes) {
  const std::int64_t size = element_bytes(schedule, place);
  std::byte* array = arrays[static_cast<std::size_t>(place.array)].data();
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t stride = 0;
  std::int64_t count = 0;  // single elements at equal distances, which make one row
  const auto end_row = [&] {
    if (count > 0) add_row(array + first, last - first + size, std::max(stride, size), writes);
    count = stride = 0;
  };
  place.slice.for_each_run([&](std::int64_t offset, std::int64_t length) {
    const std::int64_t at = offset * size;
    if (length > 1) {
      end_row();
      add_row(array + at, length * size, size, writes);
      return;
    }
    if (count > 0 && at > last && (count == 1 || at - last == stride)) {
      stride = at - last;
    } else {
      end_row();
      first = at;
    }
    last = at;
    ++count;
  });
  end_row();
}

}  // namespace onehop::bench
