// Reserves memory among the ranks of one machine, which all see the same free memory and must not allocate it twice.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/memory_left.h"
#include "src/group/group_state.h"
#include "src/group/shared_memory.h"

namespace onehop::detail {

// Requests up to this size are not checked: reading the limits would cost more than they are worth.
inline constexpr std::int64_t always_fits = 1 << 20;

// a + b in bytes, or no_memory_limit if that overflows.
[[nodiscard]] std::int64_t sum_of_bytes(std::int64_t a, std::int64_t b);

// Memory that one rank is about to allocate, announced to the ranks of its machine until the system counts it as used.
class Reservation {
 public:
  // Throws Error if the available memory is less than `bytes` and the reservations of the other ranks together.
  Reservation(GroupState& group, std::int64_t bytes, const std::string& what);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // Reduces the reservation by `bytes`, which the system now counts as used.
  void used(std::int64_t bytes) noexcept;

 private:
  [[nodiscard]] RankPage& page() const noexcept { return *reinterpret_cast<RankPage*>(page_.data()); }

  SharedMemory page_;  // may outlive the group
  std::int64_t bytes_;
};

}  // namespace onehop::detail
