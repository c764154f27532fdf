// The group of all ranks that the MPI launcher started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"

namespace onehop::testing {

[[nodiscard]] const Group& world();

// The bytes of a rank's message with this number.
[[nodiscard]] inline std::vector<std::byte> message(int from, int number, std::int64_t bytes) {
  std::vector<std::byte> made(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = static_cast<std::byte>(
        (static_cast<std::size_t>(from) * 101 + static_cast<std::size_t>(number) * 37 + i * 7 + (i >> 8) * 13) & 0xff);
  }
  return made;
}

}  // namespace onehop::testing
