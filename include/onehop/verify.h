// Proves that a schedule loses and overwrites nothing. Four rules hold over all ranks:
//   1. shape:    both ends of a transfer exist, lie inside their arrays and have equal size; `combine` suits the type.
//   2. writes:   no element is written twice in a round, unless all transfers that write it combine in the same way
//                (they combine in the order of the round).
//   3. reads:    no transfer of a round reads an element that another transfer of the round writes. Exceptions:
//                - an exact exchange: two transfers between two different ranks, each of which writes exactly what the
//                  other reads (same elements, same order). A plan executes it chunk by chunk, reading first.
//                - a round that declares its permutation (`Round::permutation`): its transfers must be all its moves,
//                  or one rank's part of them. A plan executes it in place as a whole.
//   4. coverage: every element of `Schedule::must_cover` is written by some round.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onehop/schedule.h"

namespace onehop {

struct Violation {
  enum class Rule { shape, writes, reads, coverage };
  Rule rule;
  int round = -1;     // -1: no single round (coverage, an invalid array)
  int transfer = -1;  // the transfer that breaks the rule; for coverage, the index in must_cover; -1: an array or round
  int other = -1;     // the transfer that it collides with, if any; for writes, the earlier one or itself
  std::string message;
};

// Returns the first `limit` violations; an empty list is the proof. Rules 2 to 4 are checked only if rule 1 holds
// everywhere. Each transfer is reported once per rule, with the first element that breaks it. Time is linear in the
// elements that move, and memory in those that move on one rank. Throws BadInput for a limit below 1, and for a
// schedule that writes more than about 2^35 elements on one rank or has more than about 2^34 contiguous pieces.
[[nodiscard]] std::vector<Violation> verify(const Schedule& schedule, int limit = 10);

// Throws BadInput with the first violation's message, or returns.
void verify_or_throw(const Schedule& schedule);

[[nodiscard]] std::string_view to_string(Violation::Rule rule);

}  // namespace onehop
