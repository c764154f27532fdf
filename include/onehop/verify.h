// Proof that a schedule loses and overwrites nothing. Four rules, over all ranks:
//   1. shape:    both ends of a transfer exist, lie inside their arrays and have equal size; `combine` suits the type;
//   2. writes:   no two transfers of a round write the same element, and none writes one twice (unless all that write it
//                combine in the same way, which has a fixed order: that of the round);
//   3. reads:    no transfer of a round reads an element of its rank that another of the same round writes, except an
//                exact exchange: two transfers between the same two (different) ranks, each written exactly where the
//                other is read (same elements, same order), which a plan executes chunk by chunk, reading first; and
//                except in a round that says which permutation it is (`Round::permutation`): then its transfers must be
//                all that the permutation moves, or one rank's part of that, which a plan does in place as a whole;
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
  int round = -1;     // -1: not of one round (coverage, an array that cannot be)
  int transfer = -1;  // the transfer that breaks the rule; for coverage the index in must_cover; -1: an array does
  int other = -1;     // the transfer that it collides with, if any: for writes the earlier one or itself
  std::string message;
};

// Returns the first `limit` violations; an empty list is the proof. Rules 2 to 4 are checked only if rule 1 holds
// everywhere; each transfer is reported once per rule, with the first element that breaks it. Time is linear in the
// elements that move, and memory in those that move on one rank. Throws BadInput for a limit below 1, and where more
// than 2^35 elements go to a rank or 2^34 pieces are to be looked at.
[[nodiscard]] std::vector<Violation> verify(const Schedule& schedule, int limit = 10);

// Throws BadInput with the first violation's message, or returns.
void verify_or_throw(const Schedule& schedule);

[[nodiscard]] std::string_view to_string(Violation::Rule rule);

}  // namespace onehop
