#include "src/channel/memory_check.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/text.h"
#include "src/group/reservation.h"

namespace onehop::detail {
namespace {

constexpr std::int64_t released_bytes = 128;  // of a channel, at its sender

std::int64_t ring_bytes_of(const Wanted& sender) {
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(sender.slot_bytes + 256, std::int64_t{sender.slots}, &bytes) ? no_memory_limit : bytes;
}

// If two ranks share memory, only the receiver has slots; otherwise both ends have.
std::int64_t sender_need(const GroupState& group, const Wanted& sender) {
  const auto from = static_cast<std::size_t>(sender.owner);
  const auto to = static_cast<std::size_t>(sender.peer);
  return group.pages[from].host == group.pages[to].host ? released_bytes : ring_bytes_of(sender);
}

// Ranks under the same memory limit: that of a machine, or of a control group on it.
struct Pool {
  std::int64_t left = no_memory_limit;
  std::int64_t need = 0;
  std::size_t most = 0;  // the rank that needs most
  int ranks = 0;

  void add(std::size_t rank, std::int64_t available, std::span<const std::int64_t> needs) {
    left = std::min(left, available);
    need = sum_of_bytes(need, needs[rank]);
    if (ranks++ == 0 || needs[rank] > needs[most]) most = rank;
  }
};

}  // namespace

std::vector<std::int64_t> memory_needs(const GroupState& group, std::span<const Wanted> all) {
  std::vector<std::int64_t> need(group.pages.size());
  for (const Wanted& end : all) {
    if (end.sends == 0) continue;
    std::int64_t& from = need[static_cast<std::size_t>(end.owner)];
    from = sum_of_bytes(from, sender_need(group, end));
    std::int64_t& to = need[static_cast<std::size_t>(end.peer)];
    to = sum_of_bytes(to, ring_bytes_of(end));
  }
  return need;
}

std::int64_t own_memory_need(const GroupState& group, std::span<const Wanted> own) {
  std::int64_t need = 0;
  for (const Wanted& end : own)
    need = sum_of_bytes(need, end.sends != 0 ? sender_need(group, end) : ring_bytes_of(end));
  return need;
}

void check_memory(const GroupState& group, std::span<const std::int64_t> need, std::span<const MemoryLeft> left) {
  // By machine and control group, 0 for the machine itself; in the order of ranks, which is the same on all of them.
  std::vector<Pool> pools;
  std::map<std::pair<const std::string*, std::uint64_t>, std::size_t> places;
  const auto pool_of = [&](const std::string* host, std::uint64_t control_group) -> Pool& {
    const auto [place, is_new] = places.try_emplace({host, control_group}, pools.size());
    return is_new ? pools.emplace_back() : pools[place->second];
  };
  for (std::size_t r = 0; r < need.size(); ++r) {
    const std::string* const host = group.pages[r].host;
    pool_of(host, 0).add(r, left[r].system, need);
    pool_of(host, left[r].control_group_id | 1).add(r, left[r].control_group, need);
  }
  for (const Pool& pool : pools) {
    if (pool.need <= pool.left || pool.need <= always_fits) continue;
    throw Error("not enough memory for the slots of the channels: rank " + std::to_string(pool.most) + " needs " +
                base::bytes_text(need[pool.most]) + ", all " + base::counted(pool.ranks, "rank") + " of its machine " +
                base::bytes_text(pool.need) + " together, and " + base::bytes_text(pool.left) +
                " were available there or in their control group; use smaller arrays, fewer ranks on a machine, or a "
                "smaller slot_bytes");
  }
}

}  // namespace onehop::detail
