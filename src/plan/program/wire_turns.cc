#include "src/plan/program/wire_turns.h"

#include <algorithm>
#include <cstdlib>

namespace onehop::detail {
namespace {

constexpr std::int64_t line = 64;
// Elements of a turn. The lines of a turn fit in a first-level cache of 32 KiB, with room for others.
constexpr std::int64_t most_elements = 256;
constexpr std::int64_t least_elements = 64;

// Whether short runs of elements of two slices of an array, each run in lines of its own, lie in the same lines.
bool share_lines(const Slice& a, const Slice& b, std::int64_t element_bytes) {
  if (a.is_list() || b.is_list() || a.dims() == 0) return false;
  if (!std::ranges::equal(a.extents(), b.extents()) || !std::ranges::equal(a.strides(), b.strides())) return false;
  const bool runs = a.strides().back() == 1;
  if (runs && a.dims() == 1) return false;
  const std::int64_t run = (runs ? a.extents().back() : 1) * element_bytes;
  const std::int64_t row = std::abs(a.strides()[static_cast<std::size_t>(a.dims() - (runs ? 2 : 1))]) * element_bytes;
  if (run >= line || row < line) return false;
  const std::int64_t apart = std::abs(a.offset() - b.offset()) * element_bytes % row;
  return std::min(apart, row - apart) < line + run;
}

bool share_lines(const Schedule& schedule, const Transfer& a, const Transfer& b) {
  const auto size = [&](const Place& place) {
    return schedule.arrays[static_cast<std::size_t>(place.array)].element_bytes;
  };
  if (a.codec != Codec::raw || b.codec != Codec::raw || a.from.slice.elements() != b.from.slice.elements())
    return false;
  // A transfer of a third rank may have to combine between the two, and the sender does not know.
  if (a.combine != Combine::replace || b.combine != Combine::replace) return false;
  if (size(a.to) != size(b.to)) return false;
  return (a.from.array == b.from.array && share_lines(a.from.slice, b.from.slice, size(a.from))) ||
         (a.to.array == b.to.array && share_lines(a.to.slice, b.to.slice, size(a.to)));
}

// Returns the elements of a turn: whole rows if possible, because each turn is cut into boxes.
std::int64_t turn_of(const Slice& slice) {
  std::int64_t elements = 1;
  if (slice.is_list()) return most_elements;
  for (std::size_t d = slice.extents().size(); d-- > 0;) {
    const std::int64_t extent = slice.extents()[d];
    std::int64_t rows = std::min(extent, most_elements / elements);
    while (extent % rows != 0) --rows;
    elements *= rows;
    if (rows < extent) break;
  }
  return elements >= least_elements ? elements : most_elements / elements * elements;
}

}  // namespace

Turns turns_of(const Transfers& message, int peer, const Schedule& schedule, const RoundPart& part) {
  Turns turns(message.size());
  // An exchange in place needs the same order in both directions.
  if (part.steps || part.exchanged.contains(peer)) return turns;
  for (std::size_t t = 0; t + 1 < message.size(); ++t) {
    if (!share_lines(schedule, *message[t], *message[t + 1])) continue;
    const Slice& slice = message[t]->from.slice;
    const std::int64_t turn = turn_of(slice);
    if (turn >= slice.elements()) continue;
    if (turns[t] == 0) turns[t] = turn;
    turns[t + 1] = turns[t];
  }
  return turns;
}

}  // namespace onehop::detail
