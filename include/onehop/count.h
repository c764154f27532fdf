// Counts the messages and bytes of a schedule without running it. `count` reads the same object that a plan executes,
// and its numbers equal the plan's counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onehop/schedule.h"

namespace onehop {

// Traffic of one pair of ranks. Everything that a rank sends to another in one round is one message; empty transfers
// send none.
struct PairCount {
  int from = 0;
  int to = 0;
  std::int64_t messages = 0;
  std::int64_t bytes = 0;            // on the wire, after encoding
  std::int64_t pieces = 0;           // contiguous pieces that the sender gathers: Slice::pieces of every transfer
  std::int64_t pieces_received = 0;  // contiguous pieces that the receiver scatters
  friend bool operator==(const PairCount&, const PairCount&) = default;
};

struct RankCount {
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t bytes_local = 0;  // copied inside the rank
  std::int64_t pieces_sent = 0;
  std::int64_t pieces_received = 0;
  friend bool operator==(const RankCount&, const RankCount&) = default;
};

struct Count {
  int rounds = 0;  // rounds in which anything moves, local copies included
  std::int64_t messages = 0;
  std::int64_t bytes = 0;  // between ranks; does not include `bytes_local`
  std::int64_t bytes_local = 0;
  std::vector<RankCount> ranks;  // one per rank
  std::vector<PairCount> pairs;  // pairs with traffic, sorted by (from, to)

  [[nodiscard]] std::string to_json(int indent = -1) const;
};

// Takes time linear in the number of transfers: milliseconds for 1,000 ranks. Throws BadInput if a transfer names a
// rank or an array that the schedule does not have.
[[nodiscard]] Count count(const Schedule& schedule);

}  // namespace onehop
