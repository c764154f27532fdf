// Bounds of the schedules that patterns make.
#pragma once

#include <optional>
#include <string>

#include "onehop/schedule.h"
#include "src/base/memory_left.h"

namespace onehop::detail {

// Throws BadInput unless a schedule may have as many ranks, and `only_rank` is one of them.
void check_ranks(const std::string& pattern, int ranks, std::optional<int> only_rank);

// check_room for a list that a pattern is about to make; a list that grows is copied.
inline void check_fits(const std::string& pattern, double number, const std::string& things = "transfers",
                       std::size_t bytes = sizeof(Transfer)) {
  check_room(pattern, number, things, 2 * static_cast<double>(bytes));
}

// Calls visit(from, to) for each pair of ranks, or those with `only_rank`, in the order of (from, to).
template <class Visit>
void for_each_pair(const std::string& pattern, int ranks, std::optional<int> only_rank, const Visit& visit) {
  check_fits(pattern, only_rank ? 2.0 * ranks : static_cast<double>(ranks) * ranks);
  for (int from = 0; from < ranks; ++from) {
    const bool all = !only_rank || *only_rank == from;
    for (int to = all ? 0 : *only_rank; to < (all ? ranks : *only_rank + 1); ++to) visit(from, to);
  }
}

}  // namespace onehop::detail
