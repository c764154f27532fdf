#include "src/plan/program/memory_overlap.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "onehop/error.h"

namespace onehop::detail {
namespace {

// Bytes that a round accesses.
struct Access {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  int array = 0;
  bool writes = false;
};

// Whether each array shares memory with another one.
std::vector<bool> overlapping(std::span<const std::span<std::byte>> arrays) {
  std::vector<std::size_t> order;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    if (!arrays[a].empty()) order.push_back(a);
  }
  std::ranges::sort(order, std::less<>(), [&](std::size_t a) { return arrays[a].data(); });
  std::vector<bool> found(arrays.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::byte* const end = arrays[order[i]].data() + arrays[order[i]].size();
    for (std::size_t j = i + 1; j < order.size() && arrays[order[j]].data() < end; ++j) {
      found[order[i]] = found[order[j]] = true;
    }
  }
  return found;
}

std::string name_of(const Schedule& schedule, int array) {
  return "array " + std::to_string(array) + " (" + schedule.arrays[static_cast<std::size_t>(array)].name + ")";
}

}  // namespace

void check_memory_overlap(const Schedule& schedule, std::span<const std::span<std::byte>> arrays, int rank) {
  const std::vector<bool> matters = overlapping(arrays);
  if (std::ranges::none_of(matters, [](bool one) { return one; })) return;
  for (std::size_t round = 0; round < schedule.rounds.size(); ++round) {
    std::vector<Access> accesses;
    const auto add = [&](const Place& place, bool writes) {
      const auto array = static_cast<std::size_t>(place.array);
      if (place.rank != rank || !matters[array]) return;
      const std::int64_t element_bytes = schedule.arrays[array].element_bytes;
      place.slice.for_each_run([&](std::int64_t first, std::int64_t count) {
        const std::byte* const begin = arrays[array].data() + first * element_bytes;
        accesses.push_back({begin, begin + count * element_bytes, place.array, writes});
      });
    };
    for (const Transfer& transfer : schedule.rounds[round].transfers) {
      add(transfer.from, false);
      add(transfer.to, true);
    }
    std::ranges::sort(accesses, std::less<>(), &Access::begin);
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const Access& one = accesses[i];
      for (std::size_t j = i + 1; j < accesses.size() && accesses[j].begin < one.end; ++j) {
        const Access& other = accesses[j];
        if (one.array == other.array || (!one.writes && !other.writes)) continue;
        const Access& written = one.writes ? one : other;
        const Access& second = one.writes ? other : one;
        throw BadInput(name_of(schedule, one.array) + " and " + name_of(schedule, other.array) +
                       " overlap in memory on rank " + std::to_string(rank) + ", and round " + std::to_string(round) +
                       " writes through array " + std::to_string(written.array) + " what it " +
                       (second.writes ? "writes" : "reads") + " through array " + std::to_string(second.array) +
                       ": pass arrays that do not share these elements");
      }
    }
  }
}

}  // namespace onehop::detail
