#include <algorithm>
#include <span>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "src/base/text.h"
#include "src/schedule/bit_permutation.h"
#include "src/schedule/schedule_size.h"

namespace onehop {

namespace {

BitPermutation checked(const PermuteBitsSpec& spec, std::optional<int> only_rank) {
  const BitPermutation permutation{0, spec.local_bits, spec.permutation};
  if (static_cast<int>(spec.permutation.size()) != spec.bits) {
    throw BadInput("permute_bits: expected a permutation with one entry for each of the " +
                   base::counted(spec.bits, "bit") + " of the index, found " +
                   base::counted(spec.permutation.size(), "entry"));
  }
  if (!takes(spec.codec, spec.type)) {
    throw BadInput("permute_bits: codec " + std::string(to_string(spec.codec)) +
                   " needs elements of float32, float64, float16 or bfloat16, found " +
                   std::string(to_string(spec.type)));
  }
  if (const std::string problem = detail::permutation_problem(permutation); !problem.empty()) {
    throw BadInput("permute_bits: " + problem);
  }
  if (spec.element_bytes < 1) {
    throw BadInput("permute_bits: expected elements of 1 byte or more, found " + std::to_string(spec.element_bytes));
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(std::int64_t{1} << spec.local_bits, spec.element_bytes, &bytes)) {
    throw BadInput("permute_bits: expected fewer than 2^63 bytes on a rank, found 2^" +
                   std::to_string(spec.local_bits) + " elements of " + base::counted(spec.element_bytes, "byte"));
  }
  detail::check_ranks("permute_bits", 1 << (spec.bits - spec.local_bits), only_rank);
  return permutation;
}

// `partners` of each rank, in all rounds.
Schedule empty_schedule(const PermuteBitsSpec& spec, const BitPermutation& permutation, const std::string& name,
                        std::optional<int> only_rank, int partners) {
  Schedule schedule;
  schedule.name = name;
  schedule.ranks = 1 << (spec.bits - spec.local_bits);
  schedule.arrays = {{"state", spec.element_bytes, spec.type, {std::int64_t{1} << spec.local_bits}}};
  detail::check_fits(name, (only_rank ? 1.0 : schedule.ranks) * partners * detail::slices_per_pair(permutation));
  for (int rank = only_rank.value_or(0); rank <= only_rank.value_or(schedule.ranks - 1); ++rank) {
    auto places = detail::permutation_moves(permutation, rank);
    schedule.must_cover.insert(schedule.must_cover.end(), std::make_move_iterator(places.begin()),
                               std::make_move_iterator(places.end()));
  }
  return schedule;
}

}  // namespace

Schedule permute_bits(const PermuteBitsSpec& spec, std::optional<int> only_rank) {
  BitPermutation permutation = checked(spec, only_rank);
  const auto local = std::span(permutation.to).first(static_cast<std::size_t>(spec.local_bits));
  const auto leaving = std::ranges::count_if(local, [&](int to) { return to >= spec.local_bits; });
  Schedule schedule = empty_schedule(spec, permutation, "permute_bits", only_rank, 1 << leaving);
  Round& round = schedule.rounds.emplace_back();
  round.transfers = detail::permutation_transfers(permutation, spec.codec, only_rank);
  round.permutation = std::move(permutation);
  return schedule;
}

Schedule permute_bits_one_swap_at_a_time(const PermuteBitsSpec& spec, std::optional<int> only_rank) {
  const BitPermutation permutation = checked(spec, only_rank);
  const auto swaps = detail::swaps_of(permutation.to);
  Schedule schedule =
      empty_schedule(spec, permutation, "permute_bits_one_swap_at_a_time", only_rank, static_cast<int>(swaps.size()));
  for (const auto& [a, b] : swaps) {
    BitPermutation swap = permutation;
    for (int bit = 0; bit < spec.bits; ++bit)
      swap.to[static_cast<std::size_t>(bit)] = bit == a ? b : bit == b ? a : bit;
    Round& round = schedule.rounds.emplace_back();
    round.transfers = detail::permutation_transfers(swap, spec.codec, only_rank);
    round.permutation = std::move(swap);
  }
  return schedule;
}

}  // namespace onehop
