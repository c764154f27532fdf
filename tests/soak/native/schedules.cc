// Random schedules without violations.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "onehop/patterns.h"
#include "onehop/verify.h"
#include "tests/soak/native/schedules.h"

namespace onehop::soak {
namespace {

std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

void shuffle(Source& source, auto& values) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(source.below(static_cast<std::int64_t>(i)))]);
  }
}

Slice random_slice(Source& source, std::int64_t length, std::int64_t count) {
  const std::int64_t kind = source.below(3);
  if (kind == 0) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(length));
    std::iota(numbers.begin(), numbers.end(), 0);
    shuffle(source, numbers);
    numbers.resize(static_cast<std::size_t>(count));
    return Slice::list(numbers);
  }
  const std::int64_t widest = std::max<std::int64_t>(1, (length - 1) / std::max<std::int64_t>(1, count - 1));
  std::int64_t stride = kind == 1 ? 1 + source.below(widest) : 1;
  std::int64_t offset = source.below(length - (count - 1) * stride);
  if (source.below(4) == 0) {
    offset += (count - 1) * stride;
    stride = -stride;
  }
  return Slice::box(offset, {&count, 1}, {&stride, 1});
}

// Transfers between random slices of one or two arrays; of those that would break a rule, none is kept.
Schedule random_transfers(Source& source, int ranks) {
  Schedule schedule;
  schedule.name = "soak";
  schedule.ranks = ranks;
  const auto type = source.one_of({ElementType::bytes, ElementType::int64, ElementType::float64});
  const bool numbers = type != ElementType::bytes;
  const std::int64_t bytes = numbers ? 8 : source.one_of<std::int64_t>({1, 4, 8, 16, 24});
  const std::int64_t longest = source.one_of<std::int64_t>({3, 3, 10, 40, 300});
  std::int64_t shortest = longest;
  for (std::int64_t k = 1 + source.below(2); k > 0; --k) {
    ArraySpec& array = schedule.arrays.emplace_back(ArraySpec{"a" + std::to_string(k), bytes, type, {}});
    for (int rank = 0; rank < ranks; ++rank) array.elements.push_back(1 + source.below(longest));
    shortest = std::min(shortest, *std::min_element(array.elements.begin(), array.elements.end()));
  }
  const auto place = [&](std::int64_t count) {
    const auto array = source.below(static_cast<std::int64_t>(schedule.arrays.size()));
    const auto rank = static_cast<int>(source.below(ranks));
    const std::int64_t length = schedule.arrays[static_cast<std::size_t>(array)].elements_on(rank);
    return Place{rank, static_cast<int>(array), random_slice(source, length, count)};
  };
  for (std::int64_t rounds = 1 + source.below(3); rounds > 0; --rounds) {
    schedule.rounds.emplace_back();
    for (std::int64_t tries = 1 + source.below(3 * ranks); tries > 0; --tries) {
      const std::int64_t count = 1 + source.below(shortest);
      const Place from = place(count);
      const Place to = place(count);
      auto combine = Combine::replace;
      if (numbers && source.below(2) == 0) combine = source.one_of({Combine::add, Combine::min, Combine::max});
      std::vector<Transfer>& transfers = schedule.rounds.back().transfers;
      const std::size_t before = transfers.size();
      transfers.push_back({from, to, combine, Codec::raw});
      if (source.below(3) == 0) transfers.push_back({to, from, Combine::replace, Codec::raw});  // an exchange in place
      if (!verify(schedule, 1).empty()) transfers.resize(before);
    }
  }
  return schedule;
}

Schedule random_permutation(Source& source, int ranks) {
  PermuteBitsSpec spec;
  spec.local_bits = static_cast<int>(1 + source.below(7));
  spec.bits = spec.local_bits + (ranks == 4 ? 2 : 1);
  spec.permutation.resize(static_cast<std::size_t>(spec.bits));
  std::iota(spec.permutation.begin(), spec.permutation.end(), 0);
  shuffle(source, spec.permutation);
  spec.element_bytes = source.one_of<std::int64_t>({8, 16});
  return source.below(4) == 0 ? permute_bits_one_swap_at_a_time(spec) : permute_bits(spec);
}

Schedule random_halo(Source& source, int ranks) {
  HaloSpec spec;
  const int dims = static_cast<int>(1 + source.below(3));
  spec.grid.assign(static_cast<std::size_t>(dims), 1);
  spec.grid[static_cast<std::size_t>(source.below(dims))] = ranks;
  if (dims > 1 && ranks == 4 && source.below(2) == 0) {
    spec.grid.assign(static_cast<std::size_t>(dims), 1);
    spec.grid[0] = spec.grid[1] = 2;
  }
  for (const int blocks : spec.grid) {
    spec.extents.push_back(blocks * (1 + source.below(3)) + (blocks > 1 ? source.below(2) : 0));
    const std::int64_t below = source.below(3);
    const std::int64_t above = source.below(3);
    spec.widths.emplace_back(below, above);
    spec.periodic.push_back(source.below(2) == 0);
  }
  spec.corners = source.below(2) == 0;
  spec.element_bytes = {source.one_of<std::int64_t>({8, 24})};
  if (source.below(2) == 0) spec.element_bytes.push_back(source.one_of<std::int64_t>({4, 16}));
  return halo(spec);
}

Schedule random_collective(Source& source, int ranks) {
  const std::int64_t elements = 1 + source.below(source.one_of<std::int64_t>({4, 30, 200}));
  switch (source.below(3)) {
    case 0:
      return allgather(ranks, elements, source.one_of<std::int64_t>({1, 8}));
    case 1:
      return broadcast(ranks, elements, 8, static_cast<int>(source.below(ranks)));
    default: {
      AllReduceSpec spec;
      spec.ranks = ranks;
      spec.elements = elements;
      spec.type = source.one_of({ElementType::int64, ElementType::float64});
      spec.combine = source.one_of({Combine::add, Combine::min, Combine::max});
      spec.algorithm = source.one_of({ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot});
      return allreduce(spec);
    }
  }
}

}  // namespace

std::uint64_t mix(std::uint64_t seed, std::uint64_t number) {
  return scramble(scramble(seed + 0x9E3779B97F4A7C15) + number * 0x9E3779B97F4A7C15);
}

Schedule random_schedule(Source& source, int ranks) {
  Schedule schedule;
  const auto crosses = [](const Transfer& one) { return one.from.rank != one.to.rank; };
  do {
    const std::int64_t kind = source.below(10);
    schedule = kind < 5                 ? random_transfers(source, ranks)
               : kind < 7 && ranks != 3 ? random_permutation(source, ranks)
               : kind < 9               ? random_halo(source, ranks)
                                        : random_collective(source, ranks);
  } while (std::none_of(schedule.rounds.begin(), schedule.rounds.end(), [&](const Round& round) {
    return std::any_of(round.transfers.begin(), round.transfers.end(), crosses);
  }));
  verify_or_throw(schedule);
  return schedule;
}

}  // namespace onehop::soak
