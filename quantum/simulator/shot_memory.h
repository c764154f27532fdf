// The memory that the outcomes of shots need, compared with what is left before anything is run.
#pragma once

#include <cstdint>
#include <string>

#include "onehop/group.h"

namespace onehop::quantum {

// A number of things that a caller asks for, and the bytes that each of them takes on every rank.
struct Wanted {
  std::string what;  // "shots"
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

// Of one shot whose outcome has this many words of 64 bits: the outcome, and the sort that counts equal ones.
[[nodiscard]] constexpr std::int64_t bytes_per_shot(int words) { return 8 * std::int64_t{words} + 40; }

// Throws BadInput, on all ranks, if a machine does not have the memory left that its ranks need for these. Collective
// unless they need little; every rank must ask for the same.
void check_shots_fit(const Group& group, const Wanted& first, const Wanted& second = {});

}  // namespace onehop::quantum
