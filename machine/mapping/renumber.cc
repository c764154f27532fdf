#include <algorithm>
#include <string>

#include "onehop/error.h"
#include "onehop/machine/mapping.h"
#include "src/base/text.h"

namespace onehop {

namespace {

void check_permutation(int ranks, std::span<const int> rank_at) {
  if (static_cast<int>(rank_at.size()) != ranks) {
    throw BadInput("map: expected a permutation of the " + base::counted(ranks, "rank") + ", found " +
                   base::counted(rank_at.size(), "number"));
  }
  std::vector<bool> seen(rank_at.size(), false);
  for (const int rank : rank_at) {
    if (rank < 0 || rank >= ranks) {
      throw BadInput("map: expected a permutation of the ranks 0 to " + std::to_string(ranks - 1) + ", found " +
                     std::to_string(rank));
    }
    if (seen[static_cast<std::size_t>(rank)]) {
      throw BadInput("map: expected a permutation of the ranks 0 to " + std::to_string(ranks - 1) + ", found " +
                     std::to_string(rank) + " twice");
    }
    seen[static_cast<std::size_t>(rank)] = true;
  }
}

}  // namespace

Schedule renumber(const Schedule& schedule, std::span<const int> rank_at) {
  check_permutation(schedule.ranks, rank_at);
  const auto rename = [&](Place& place) {
    if (place.rank < 0 || place.rank >= schedule.ranks) {
      throw BadInput("map: expected a schedule that names ranks 0 to " + std::to_string(schedule.ranks - 1) +
                     ", found " + std::to_string(place.rank));
    }
    place.rank = rank_at[static_cast<std::size_t>(place.rank)];
  };
  Schedule renumbered = schedule;
  for (std::size_t i = 0; i < renumbered.arrays.size(); ++i) {
    const std::vector<std::int64_t>& elements = schedule.arrays[i].elements;
    if (elements.size() == 1 || elements.size() != rank_at.size()) continue;
    for (std::size_t r = 0; r < rank_at.size(); ++r) {
      renumbered.arrays[i].elements[static_cast<std::size_t>(rank_at[r])] = elements[r];
    }
  }
  for (Round& round : renumbered.rounds) {
    for (Transfer& transfer : round.transfers) {
      rename(transfer.from);
      rename(transfer.to);
    }
    std::ranges::stable_sort(round.transfers, [](const Transfer& a, const Transfer& b) {
      return a.from.rank != b.from.rank ? a.from.rank < b.from.rank : a.to.rank < b.to.rank;
    });
    // The ranks of a bit permutation are numbered by bits of the index.
    round.permutation.reset();
  }
  for (Place& place : renumbered.must_cover) rename(place);
  std::ranges::stable_sort(renumbered.must_cover, {}, &Place::rank);
  return renumbered;
}

}  // namespace onehop
