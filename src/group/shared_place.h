// Where arrays lie in memory that the ranks of a machine share, for components that access each other's arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "onehop/group.h"

namespace onehop {

// An array in memory from Group::allocate, as the rank that made it tells the others.
struct SharedPlace {
  std::uint32_t memory = 0;  // names the memory as long as it exists; 0: the array is in no such memory
  std::int32_t descriptor = -1;
  std::int64_t offset = 0;
};

// The places of the arrays of this process that were asked for last.
class Places {
 public:
  // Takes a lock and a system call for an array that is asked for the first time since this process made or freed
  // shared memory, and otherwise neither.
  [[nodiscard]] SharedPlace of(std::span<const std::byte> array);

 private:
  struct Known {
    std::span<const std::byte> array;
    SharedPlace place;
  };
  std::array<Known, 32> known_{};
  std::size_t next_ = 0;
  std::uint64_t changes_ = 0;
};

// The memory of such an array on another rank, mapped here.
struct MappedMemory {
  std::shared_ptr<std::byte> begin;
  std::int64_t bytes = 0;
};
// Throws Error if it cannot be mapped, PeerLost if the rank has ended.
[[nodiscard]] MappedMemory map_memory(const Group& group, int rank, const SharedPlace& place);

}  // namespace onehop
