#include "src/plan/wire_layout.h"

#include <algorithm>
#include <cassert>

namespace onehop::detail {

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
  for (std::size_t t = 0; t < transfers.size(); ++t) {
    const WireSize& size = transfers[t];
    assert(size.unit_bytes <= slot_bytes);
    const std::int64_t units = (size.elements + size.unit_elements - 1) / size.unit_elements;
    for (std::int64_t first = 0; first < units;) {
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
      const std::int64_t last = first + std::min({room, slot_room, units - first});
      chunk.pieces.push_back(
          {static_cast<int>(t), first * size.unit_elements, std::min(last * size.unit_elements, size.elements)});
      chunk.end += (last == units ? size.bytes : last * size.unit_bytes) - first * size.unit_bytes;
      fragment.bytes = chunk.end;
      first = last;
    }
  }
  return fragments;
}

}  // namespace onehop::detail
