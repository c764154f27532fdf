// `onehop bench channel`: several messages in both directions at once between two ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/native/measure.h"

namespace onehop::bench {

struct ExchangeOptions {
  Effort effort;
  int messages = 10;
  bool peers = true;
  bool qspi = false;  // whether "ours" is the drop-in interface qspi; plain channels are then variants
};

// Collective over a group of two ranks; `bytes`, a multiple of 8, is the size of one message. Samples are µs for all
// messages of both directions: "onehop" reads them in the slot, in which they lie contiguous, and "onehop, plan" in
// arrays of their own.
[[nodiscard]] std::vector<Samples> exchange(const Group& group, std::int64_t bytes, const ExchangeOptions& options);

}  // namespace onehop::bench
