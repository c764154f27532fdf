// What a schedule will move, without moving it. `count` reads the same object that a plan executes; a plan's own
// counters must come out equal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onehop/schedule.h"

namespace onehop {

// All a rank sends to one other rank in one round is one message; transfers of no elements are none.
struct PairCount {
  int from = 0;
  int to = 0;
  std::int64_t messages = 0;
  std::int64_t bytes = 0;            // on the wire, as the codec leaves them
  std::int64_t pieces = 0;           // contiguous pieces that the sender gathers: Slice::pieces of every transfer
  std::int64_t pieces_received = 0;  // contiguous pieces that the receiver scatters
  friend bool operator==(const PairCount&, const PairCount&) = default;
};

struct RankCount {
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t bytes_local = 0;  // copied inside the rank, crossing nothing
  std::int64_t pieces_sent = 0;
  std::int64_t pieces_received = 0;
  friend bool operator==(const RankCount&, const RankCount&) = default;
};

struct Count {
  int rounds = 0;  // rounds in which anything moves, local copies included
  std::int64_t messages = 0;
  std::int64_t bytes = 0;  // between ranks; `bytes_local` is on top
  std::int64_t bytes_local = 0;
  std::vector<RankCount> ranks;  // one per rank
  std::vector<PairCount> pairs;  // pairs with traffic, sorted by (from, to)

  [[nodiscard]] std::string to_json(int indent = -1) const;
};

// Linear in the number of transfers: milliseconds for 1,000 ranks. Throws BadInput where a transfer names a rank or an
// array that the schedule does not have.
[[nodiscard]] Count count(const Schedule& schedule);

}  // namespace onehop
