// Reserves memory among the ranks of one machine, which all see the same free memory and must not allocate it twice.
#pragma once

#include <cstdint>
#include <string>

#include "src/group/group_state.h"
#include "src/group/shared_memory.h"

namespace onehop::detail {

// Pieces up to this size always fit; a look at the limits costs more than they are worth.
inline constexpr std::int64_t always_fits = 1 << 20;

// a + b in bytes, or no_memory_limit where that overflows.
[[nodiscard]] std::int64_t sum_of_bytes(std::int64_t a, std::int64_t b);

// What one rank takes by itself, told to the others of its machine until the system counts it as used.
class Reservation {
 public:
  // Throws Error if it is more than there is beside what the others are about to take.
  Reservation(GroupState& group, std::int64_t bytes, const std::string& what);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // So much of it is used now.
  void used(std::int64_t bytes) noexcept;

 private:
  [[nodiscard]] RankPage& page() const noexcept { return *reinterpret_cast<RankPage*>(page_.data()); }

  SharedMemory page_;  // may outlive the group
  std::int64_t bytes_;
};

}  // namespace onehop::detail
