// Random schedules of long messages.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "onehop/patterns.h"
#include "onehop/verify.h"
#include "tests/soak/native/schedules.h"

namespace onehop::soak {
namespace {

// Count elements of an array of `length`: in a row, in reverse, every second one, or listed in blocks.
Slice long_slice(Source& source, std::int64_t length, std::int64_t count) {
  const std::int64_t kind = source.below(6);
  if (kind == 0 && 2 * count - 1 <= length) {
    const std::int64_t stride = 2;
    return Slice::box(source.below(length - 2 * (count - 1)), {&count, 1}, {&stride, 1});
  }
  const std::int64_t offset = source.below(length - count + 1);
  if (kind == 1) {
    const std::int64_t stride = -1;
    return Slice::box(offset + count - 1, {&count, 1}, {&stride, 1});
  }
  if (kind == 2) {
    // Two halves that change places.
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), offset);
    std::rotate(numbers.begin(), numbers.begin() + count / 2, numbers.end());
    return Slice::list(numbers);
  }
  return Slice::range(offset, count);
}

// Every rank sends a part of its first array to another one, or pairs of ranks exchange a part of it in place.
Schedule long_transfers(Source& source, int ranks) {
  Schedule schedule;
  schedule.name = "long";
  schedule.ranks = ranks;
  const std::int64_t bytes = source.one_of<std::int64_t>({1, 4, 8, 16, 24});
  const std::int64_t least = longest_short_message / bytes + 1;
  const std::int64_t most = longest_message / bytes;
  const std::int64_t count = least + source.below(source.one_of<std::int64_t>({least, 8 * least, most - least + 1}));
  const std::int64_t length = count + source.below(source.one_of<std::int64_t>({1, 100, count + 1}));
  schedule.arrays = {{"from", bytes, ElementType::bytes, {length}}, {"to", bytes, ElementType::bytes, {length}}};
  schedule.rounds.resize(static_cast<std::size_t>(1 + source.below(2)));
  for (Round& round : schedule.rounds) {
    if (source.below(3) == 0) {
      const Slice slice = long_slice(source, length, count);
      for (int rank = 0; rank + 1 < ranks; rank += 2) {
        round.transfers.push_back({{rank, 0, slice}, {rank + 1, 0, slice}});
        round.transfers.push_back({{rank + 1, 0, slice}, {rank, 0, slice}});
      }
    } else {
      const auto shift = static_cast<int>(1 + source.below(ranks - 1));
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice read = long_slice(source, length, count);
        round.transfers.push_back({{rank, 0, read}, {(rank + shift) % ranks, 1, long_slice(source, length, count)}});
      }
    }
  }
  return schedule;
}

Schedule long_permutation(Source& source, int ranks) {
  PermuteBitsSpec spec;
  spec.element_bytes = source.one_of<std::int64_t>({8, 16});
  spec.local_bits = static_cast<int>(11 + source.below(4));
  const int more = ranks == 4 ? 2 : 1;
  spec.bits = spec.local_bits + more;
  spec.permutation.resize(static_cast<std::size_t>(spec.bits));
  std::iota(spec.permutation.begin(), spec.permutation.end(), 0);
  // Half of the elements or more change their rank.
  for (int bit = 0; bit < more; ++bit) {
    std::swap(spec.permutation[static_cast<std::size_t>(spec.local_bits + bit)],
              spec.permutation[static_cast<std::size_t>(source.below(spec.local_bits))]);
  }
  return source.below(4) == 0 ? permute_bits_one_swap_at_a_time(spec) : permute_bits(spec);
}

// Faces of 4 KiB or more in the dimension that is divided.
Schedule long_halo(Source& source, int ranks) {
  HaloSpec spec;
  spec.grid = {ranks, 1, 1};
  spec.element_bytes = {source.one_of<std::int64_t>({8, 24})};
  const std::int64_t edge = 24 + source.below(24);
  spec.extents = {ranks * (2 + source.below(3)), edge, edge};
  for (int dim = 0; dim < 3; ++dim) spec.widths.emplace_back(dim == 0 ? 1 : 0, dim == 0 ? 1 + source.below(2) : 0);
  spec.periodic = {source.below(2) == 0, true, true};
  return halo(spec);
}

}  // namespace

Schedule long_schedule(Source& source, int ranks) {
  const std::int64_t kind = source.below(10);
  const std::int64_t elements = 513 + source.below(source.one_of<std::int64_t>({500, 8000, 32'000}));  // of 8 bytes
  Schedule schedule = kind < 6                 ? long_transfers(source, ranks)
                      : kind < 8 && ranks != 3 ? long_permutation(source, ranks)
                      : kind < 9               ? long_halo(source, ranks)
                      : elements % 2 == 0      ? allgather(ranks, elements, 8)
                                               : broadcast(ranks, elements, 8, static_cast<int>(elements % ranks));
  verify_or_throw(schedule);
  return schedule;
}

}  // namespace onehop::soak
