// Proof that a schedule loses and overwrites nothing. Four rules, over all ranks:
//   1. shape:    both ends of a transfer exist, lie inside their arrays and have equal size; `combine` suits the type;
//   2. writes:   no two transfers of a round write the same element (unless both combine, which has a fixed order);
//   3. reads:    no transfer of a round reads an element of its rank that another of the same round writes, except an
//                exact exchange: two transfers between the same two ranks, each written exactly where the other is read
//                (same elements, same order), which a plan executes chunk by chunk, reading first;
//   4. coverage: every element of `Schedule::must_cover` is written by some round.
#pragma once

#include <string>
#include <vector>

#include "onehop/schedule.h"

namespace onehop {

struct Violation {
  enum class Rule { shape, writes, reads, coverage };
  Rule rule;
  int round = -1;     // -1: not of one round (coverage)
  int transfer = -1;  // the transfer that breaks the rule; for coverage the index in must_cover
  int other = -1;     // the transfer that it collides with, if any
  std::string message;
};

// The first `limit` violations; empty is the proof. Time and memory are linear in the elements that move, one rank at a time.
[[nodiscard]] std::vector<Violation> verify(const Schedule& schedule, int limit = 10);

// Throws BadInput with the first violation's message, or returns.
void verify_or_throw(const Schedule& schedule);

[[nodiscard]] std::string_view to_string(Violation::Rule rule);

}  // namespace onehop
