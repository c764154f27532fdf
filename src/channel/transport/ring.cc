// The layout of a channel's slots in memory, the same for every transport.
#include <cassert>
#include <cstring>

#include "onehop/error.h"
#include "src/base/memory_left.h"
#include "src/base/text.h"
#include "src/channel/transport/transport.h"

namespace onehop::detail {
namespace {

constexpr std::int64_t cache_line = 64;
constexpr std::int64_t pair_of_lines = 128;  // processors fetch lines in pairs: flags of two slots stay apart

std::int64_t slot_stride(const ChannelShape& shape) {
  const std::int64_t payload = shape.slot_bytes + 8 <= cache_line ? 8 : cache_line;
  return (payload + shape.slot_bytes + pair_of_lines - 1) / pair_of_lines * pair_of_lines;
}

}  // namespace

std::int64_t ring_bytes(const ChannelShape& shape) { return slot_stride(shape) * shape.slots; }

SlotRing make_ring(const ChannelShape& shape, std::byte* memory) {
  assert(reinterpret_cast<std::uintptr_t>(memory) % cache_line == 0);
  SlotRing ring;
  ring.first = memory;
  ring.stride = static_cast<std::uint64_t>(slot_stride(shape));
  ring.slots = static_cast<std::uint32_t>(shape.slots);
  if (memory != nullptr) ring.end = memory + ring_bytes(shape);
  ring.payload = shape.slot_bytes + 8 <= cache_line ? 8 : static_cast<std::uint32_t>(cache_line);
  ring.slot_bytes = shape.slot_bytes;
  ring.chunk_bytes = shape.chunk_bytes;
  ring.message_bytes = shape.bytes;
  return ring;
}

RingMemory allocate_ring(const ChannelShape& shape, const std::string& network) {
  constexpr std::int64_t page = 4096;
  const std::int64_t bytes = (ring_bytes(shape) + page - 1) / page * page;
  const std::int64_t available = available_memory();
  if (bytes <= available) {
    if (RingMemory memory{static_cast<std::byte*>(std::aligned_alloc(page, static_cast<std::size_t>(bytes)))}) {
      std::memset(memory.get(), 0, static_cast<std::size_t>(bytes));
      return memory;
    }
  }
  throw Error("the slots of a channel over " + network + " need " + base::counted(bytes, "byte") + ", " +
              std::to_string(available) + " are available; ask for smaller or fewer slots");
}

std::uint64_t release_mask(int slots) {
  std::uint64_t batch = 1;
  while (batch * 2 <= static_cast<std::uint64_t>(slots) / 2) batch *= 2;
  return batch - 1;
}

std::string Endpoint::name() const {
  return "channel " + std::to_string(shape_.from) + " -> " + std::to_string(shape_.to) +
         (shape_.tag == 0 ? std::string() : " (tag " + std::to_string(shape_.tag) + ")");
}

}  // namespace onehop::detail
