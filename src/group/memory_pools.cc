#include "src/group/memory_pools.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/memory.h"
#include "src/base/text.h"
#include "src/group/reservation.h"

namespace onehop {

namespace detail {
namespace {

// Ranks under the same memory limit: that of a machine, or of a control group on it.
struct Pool {
  bool is_machine;
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

void check_memory(const GroupState& group, std::span<const std::int64_t> need, std::span<const MemoryLeft> left,
                  const std::string& what, const std::string& advice) {
  // By machine and control group, 0 for the machine itself; in the order of ranks, which is the same on all of them.
  std::vector<Pool> pools;
  std::map<std::pair<const std::string*, std::uint64_t>, std::size_t> places;
  const auto pool_of = [&](const std::string* host, std::uint64_t control_group) -> Pool& {
    const auto [place, is_new] = places.try_emplace({host, control_group}, pools.size());
    return is_new ? pools.emplace_back(Pool{.is_machine = control_group == 0}) : pools[place->second];
  };
  for (std::size_t r = 0; r < need.size(); ++r) {
    const std::string* const host = group.pages[r].host;
    pool_of(host, 0).add(r, left[r].system, need);
    pool_of(host, left[r].control_group_id | 1).add(r, left[r].control_group, need);
  }
  const Pool* least = nullptr;  // of several that are too small, the one that says what can be taken
  for (const Pool& pool : pools) {
    if (pool.need <= pool.left || pool.need <= always_fits) continue;
    if (least == nullptr || pool.left < least->left) least = &pool;
  }
  if (least == nullptr) return;
  std::string message = "not enough memory for " + what + ": rank " + std::to_string(least->most) + " needs ";
  message += base::bytes_text(need[least->most]);
  const char* const place = least->is_machine ? "machine" : "control group";
  if (least->ranks > 1) {
    message += ", all " + base::counted(least->ranks, "rank") + " of its " + place + " ";
    message += base::bytes_text(least->need) + " together";
  }
  message += ", and " + base::bytes_text(least->left) + " were available ";
  message += (least->is_machine ? "on its " : "in its ") + std::string(place) + "; " + advice;
  throw Error(message);
}

}  // namespace detail

void require_memory(const Group& group, std::int64_t bytes, const std::string& what, const std::string& advice) {
  struct Mine {
    std::int64_t need;
    std::int64_t system;
    std::int64_t control_group;
    std::uint64_t control_group_id;
  };
  const detail::MemoryLeft left = detail::memory_left();
  const Mine mine{bytes, left.system, left.control_group, left.control_group_id};
  std::vector<std::int64_t> needs;
  std::vector<detail::MemoryLeft> lefts;
  for (const auto& part : group.allgather(detail::bytes_of(mine))) {
    Mine theirs{};
    if (part.size() != sizeof theirs) throw Mismatch("memory: expected the same step on every rank");
    std::memcpy(&theirs, part.data(), sizeof theirs);
    needs.push_back(theirs.need);
    lefts.push_back({theirs.system, theirs.control_group, theirs.control_group_id});
  }
  detail::check_memory(*group.state(), needs, lefts, what, advice);
}

}  // namespace onehop
