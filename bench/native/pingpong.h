// `onehop bench pingpong`: one message back and forth between two ranks; one way is half of that time.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/native/measure.h"

namespace onehop::bench {

struct PingPongOptions {
  Effort effort;
  bool get = false;   // also time Receiver::get into an array
  bool peers = true;  // compare with MPI if there is one
  bool qspi = false;  // whether "ours" is the drop-in interface qspi; a plain channel is then a variant
};

// Collective over a group of two ranks. Samples are of one way, in µs; bytes = 0 is a bare signal.
[[nodiscard]] std::vector<Samples> ping_pong(const Group& group, std::int64_t bytes, const PingPongOptions& options);

}  // namespace onehop::bench
