// Small random schedules whose ends exist and fit together. Most of them break other rules, some do not.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>

#include "onehop/schedule.h"

namespace onehop::testing {

class RandomSchedules {
 public:
  explicit RandomSchedules(unsigned seed) : random_(seed) {}

  Schedule next() {
    Schedule schedule;
    schedule.name = "random";
    schedule.ranks = 1 + below(4);
    schedule.arrays = {{"u", 8, ElementType::float64, {12}}, {"v", 8, ElementType::float64, {}}};
    for (int rank = 0; rank < schedule.ranks; ++rank) schedule.arrays[1].elements.push_back(8 + below(9));
    if (schedule.ranks == 1) schedule.arrays[1].elements = {9};
    for (int rounds = 1 + below(2); rounds > 0; --rounds) {
      Round round;
      for (int count = below(5); count > 0; --count) add_transfers(schedule, round);
      schedule.rounds.push_back(round);
    }
    for (int count = below(3); count > 0; --count) schedule.must_cover.push_back(place(schedule, 1 + below(3)));
    return schedule;
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  Slice slice(std::int64_t array_length, std::int64_t elements) {
    const int kind = below(4);
    if (kind == 0) {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(array_length));
      std::iota(indices.begin(), indices.end(), 0);
      std::shuffle(indices.begin(), indices.end(), random_);
      if (below(6) == 0) indices[0] = indices[1];
      indices.resize(static_cast<std::size_t>(elements));
      return Slice::list(indices);
    }
    std::int64_t stride = kind == 1 && elements > 1 ? below(static_cast<int>(array_length / elements)) + 1 : 1;
    if (kind == 2 && below(8) == 0) stride = 0;
    const std::int64_t span = elements == 0 ? 0 : stride * (elements - 1) + 1;
    const std::int64_t offset = below(static_cast<int>(array_length - span) + 1);
    return Slice::box(offset, {&elements, 1}, {&stride, 1});
  }

  Place place(const Schedule& schedule, std::int64_t elements) {
    const int rank = below(schedule.ranks);
    const int array = below(2);
    return {rank, array, slice(schedule.arrays[static_cast<std::size_t>(array)].elements_on(rank), elements)};
  }

  // One transfer, or two that exchange places, exactly or nearly so.
  void add_transfers(const Schedule& schedule, Round& round) {
    const std::int64_t elements = below(5);
    const auto combine = below(2) == 0 ? Combine::replace : static_cast<Combine>(1 + below(2));
    Transfer transfer{place(schedule, elements), place(schedule, elements), combine, Codec::raw};
    round.transfers.push_back(transfer);
    if (below(2) == 0) return;
    std::swap(transfer.from, transfer.to);
    if (below(4) == 0) transfer.to = place(schedule, elements);
    round.transfers.push_back(transfer);
  }

  std::mt19937 random_;
};

}  // namespace onehop::testing
