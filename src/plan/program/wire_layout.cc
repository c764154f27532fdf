#include "src/plan/program/wire_layout.h"

#include <algorithm>
#include <cassert>

namespace onehop::detail {
namespace {

std::int64_t units_of(const WireSize& size) { return (size.elements + size.unit_elements - 1) / size.unit_elements; }

bool take_turns(const WireSize& a, const WireSize& b) {
  return a.turn != 0 && a.turn == b.turn && a.elements == b.elements && a.unit_bytes == b.unit_bytes &&
         a.unit_elements == b.unit_elements;
}

// Calls visit(transfer, first unit, last unit) in the order on the wire.
template <class Visit>
void for_each_turn(std::span<const WireSize> transfers, const Visit& visit) {
  for (std::size_t begin = 0, end = 0; begin < transfers.size(); begin = end) {
    const std::int64_t units = units_of(transfers[begin]);
    for (end = begin + 1; end < transfers.size() && take_turns(transfers[begin], transfers[end]);) ++end;
    const std::int64_t turn = end - begin == 1 ? units : transfers[begin].turn;
    for (std::int64_t first = 0; first < units; first += turn) {
      for (std::size_t t = begin; t < end; ++t) visit(t, first, std::min(first + turn, units));
    }
  }
}

}  // namespace

std::vector<WireFragment> lay_out(std::span<const WireSize> transfers, std::int64_t slot_bytes,
                                  std::int64_t chunk_bytes) {
  std::vector<WireFragment> fragments;
  const auto new_chunk = [&] {
    fragments.back().chunks.push_back({{}, fragments.back().bytes, fragments.back().bytes});
  };
  const auto new_fragment = [&] {
    fragments.emplace_back();
    new_chunk();
  };
  for_each_turn(transfers, [&](std::size_t t, std::int64_t first, std::int64_t end) {
    const WireSize& size = transfers[t];
    assert(size.unit_bytes <= slot_bytes);
    const std::int64_t units = units_of(size);
    if (size.begins_fragment && first == 0 && !fragments.empty()) new_fragment();
    while (first < end) {
      if (fragments.empty()) new_fragment();
      WireFragment& fragment = fragments.back();
      WireChunk& chunk = fragment.chunks.back();
      const std::int64_t slot_room = (slot_bytes - fragment.bytes) / size.unit_bytes;
      if (slot_room == 0) {
        new_fragment();
        continue;
      }
      const std::int64_t filled = chunk.end - chunk.begin;
      std::int64_t room = (chunk_bytes - filled) / size.unit_bytes;
      if (room <= 0) {
        if (filled > 0) {
          new_chunk();
          continue;
        }
        room = 1;
      }
      const std::int64_t last = first + std::min({room, slot_room, end - first});
      chunk.pieces.push_back(
          {static_cast<int>(t), first * size.unit_elements, std::min(last * size.unit_elements, size.elements)});
      chunk.end += (last == units ? size.bytes : last * size.unit_bytes) - first * size.unit_bytes;
      fragment.bytes = chunk.end;
      first = last;
    }
  });
  return fragments;
}

}  // namespace onehop::detail
