#include "src/group/shared_place.h"

#include <sys/stat.h>

#include <algorithm>

#include "onehop/error.h"
#include "src/group/group_state.h"
#include "src/group/shared_memory.h"

namespace onehop {

namespace {

SharedPlace find(std::span<const std::byte> array) {
  const detail::SharedMemory memory = detail::SharedMemory::holding(array);
  if (memory.data() == nullptr) return {};
  // A descriptor, like an address, may have belonged to other memory before. The kernel numbers all memory of this
  // kind.
  struct stat status{};
  if (fstat(memory.fd(), &status) != 0) return {};
  return {static_cast<std::uint32_t>(status.st_ino), memory.fd(), array.data() - memory.data()};
}

}  // namespace

// An array that the caller has now was not freed since the counter had its present value, so what was found then holds.
SharedPlace Places::of(std::span<const std::byte> array) {
  const std::uint64_t now = detail::shared_memory_changes.load(std::memory_order_acquire);
  if (now != changes_) known_ = {};
  changes_ = now;
  const auto found = std::ranges::find_if(known_, [array](const Known& known) {
    return known.array.data() == array.data() && known.array.size() == array.size();
  });
  if (found != known_.end()) return found->place;
  Known& known = known_[next_++ % known_.size()];
  known = {array, find(array)};
  return known.place;
}

MappedMemory map_memory(const Group& group, int rank, const SharedPlace& place) {
  const detail::GroupState& state = *group.state();
  const auto open = [&] {
    try {
      return detail::SharedMemory::open(state.pages[static_cast<std::size_t>(rank)].pid, place.descriptor, 1);
    } catch (const Error&) {
      group.state()->throw_if_lost("mapping an array");  // the memory went with its process
      throw;
    }
  };
  const auto memory = std::make_shared<detail::SharedMemory>(open());
  return {{memory, memory->data()}, memory->bytes()};
}

}  // namespace onehop
