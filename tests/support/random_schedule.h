// Small random schedules whose ends exist and fit together.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "onehop/schedule.h"
#include "onehop/verify.h"

namespace onehop::testing {

// Most of them break other rules, some do not.
class RandomSchedules {
 public:
  explicit RandomSchedules(unsigned seed) : random_(seed) {}

  Schedule next() {
    Schedule schedule{
        "random", 1 + below(4), {{"u", 8, ElementType::float64, {12}}, {"v", 8, ElementType::float64, {}}}, {}, {}};
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

// Schedules that `verify` accepts, of one round on two to four ranks: transfers that combine into a few elements,
// copies, and exchanges in place, with codecs, in a random order.
class RandomVerifiedSchedules {
 public:
  explicit RandomVerifiedSchedules(unsigned seed) : random_(seed) {}

  Schedule next() {
    schedule_ = {"random", 2 + below(3), {}, {Round{}}, {}};
    for (const ElementType type : {ElementType::float32, ElementType::float64, ElementType::float16,
                                   ElementType::bfloat16, ElementType::int32, ElementType::int64}) {
      schedule_.arrays.push_back({std::string(to_string(type)), bytes_of(type), type, {length}});
    }
    for (int count = 4 + below(20); count > 0; --count) {
      const std::vector<Transfer> before = schedule_.rounds[0].transfers;
      below(4) == 0 ? add_exchange() : add_transfer();
      if (!verify(schedule_, 1).empty()) schedule_.rounds[0].transfers = before;
    }
    auto& transfers = schedule_.rounds[0].transfers;
    std::shuffle(transfers.begin(), transfers.end(), random_);
    return schedule_;
  }

 private:
  // Elements below `targets` are only read, those from `exchanged` on are read and written.
  static constexpr std::int64_t length = 180;
  static constexpr std::int64_t targets = 60;
  static constexpr std::int64_t exchanged = 120;

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  Slice slice(std::int64_t begin, std::int64_t elements) {
    if (below(3) == 0) {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(60));
      std::iota(indices.begin(), indices.end(), begin);
      std::shuffle(indices.begin(), indices.end(), random_);
      indices.resize(static_cast<std::size_t>(elements));
      return Slice::list(indices);
    }
    const std::int64_t stride = elements <= 20 ? 1 + below(3) : 1;
    const std::int64_t offset = begin + below(static_cast<int>(60 - stride * (elements - 1)));
    return Slice::box(offset, {&elements, 1}, {&stride, 1});
  }

  Codec codec(int array) {
    const std::array codecs = {Codec::raw, Codec::raw, Codec::q8, Codec::fp16};
    const Codec chosen = codecs[static_cast<std::size_t>(below(4))];
    return takes(chosen, schedule_.arrays[static_cast<std::size_t>(array)].type) ? chosen : Codec::raw;
  }

  // The combination belongs to the array, so that several transfers can combine into its elements.
  void add_transfer() {
    const int array = below(static_cast<int>(schedule_.arrays.size()));
    const std::int64_t elements = 1 + below(59);
    const Combine combine = below(8) == 0 ? Combine::replace : static_cast<Combine>(1 + array % 4);
    schedule_.rounds[0].transfers.push_back({{below(schedule_.ranks), array, slice(0, elements)},
                                             {below(schedule_.ranks), array, slice(targets, elements)},
                                             combine,
                                             codec(array)});
  }

  void add_exchange() {
    const int array = below(static_cast<int>(schedule_.arrays.size()));
    const std::int64_t elements = 1 + below(30);
    const Place a{below(schedule_.ranks), array, slice(exchanged, elements)};
    const Place b{below(schedule_.ranks), array, slice(exchanged, elements)};
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      const Combine combine = below(2) == 0 ? Combine::replace : Combine::add;
      schedule_.rounds[0].transfers.push_back({from, to, combine, codec(array)});
    }
  }

  std::mt19937 random_;
  Schedule schedule_;
};

}  // namespace onehop::testing
