// Counter-based random numbers: Philox4x32 with ten rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as
// easy as 1, 2, 3, 2011). A result depends only on a key (the seed) and a counter (the site, the shot, ...), not on the
// number of ranks or the order of calls.
#pragma once

#include <array>
#include <cstdint>

namespace onehop {

// Four words of 32 random bits each.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                            std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

}  // namespace onehop
