#include "src/channel/reservation.h"

#include <algorithm>
#include <map>

#include "onehop/error.h"
#include "src/channel/transport/transport.h"

namespace onehop::detail {
namespace {

constexpr std::int64_t released_bytes = 128;  // of a channel, at its sender
// Small pieces always fit; a look at the limits costs more than they are worth.
constexpr std::int64_t always_fits = 1 << 20;

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t total = 0;
  return __builtin_add_overflow(a, b, &total) ? no_memory_limit : total;
}

std::int64_t ring_bytes_of(const Wanted& sender) {
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(sender.slot_bytes + 256, std::int64_t{sender.slots}, &bytes) ? no_memory_limit : bytes;
}

// By rank. Where two ranks share memory the receiver has the slots, else both ends have some.
std::vector<std::int64_t> needs(const GroupState& group, std::span<const Wanted> all) {
  std::vector<std::int64_t> need(group.pages.size());
  for (const Wanted& end : all) {
    if (end.sends == 0) continue;
    const auto from = static_cast<std::size_t>(end.owner);
    const auto to = static_cast<std::size_t>(end.peer);
    const bool here = group.pages[from].host == group.pages[to].host;
    need[to] = sum(need[to], ring_bytes_of(end));
    need[from] = sum(need[from], here ? released_bytes : ring_bytes_of(end));
  }
  return need;
}

// Ranks that take from the same memory: of a machine, or of a control group there.
struct Pool {
  std::int64_t left = no_memory_limit;
  std::int64_t need = 0;
  std::size_t most = 0;  // the rank that needs most
  int ranks = 0;

  void add(std::size_t rank, std::int64_t available, std::span<const std::int64_t> needs) {
    left = std::min(left, available);
    need = sum(need, needs[rank]);
    if (ranks++ == 0 || needs[rank] > needs[most]) most = rank;
  }
};

}  // namespace

void check_memory(const GroupState& group, std::span<const Wanted> all, std::span<const MemoryLeft> left) {
  const std::vector<std::int64_t> need = needs(group, all);
  std::map<std::string, Pool> pools;
  for (std::size_t r = 0; r < need.size(); ++r) {
    const std::string& host = group.pages[r].host;
    pools[host].add(r, left[r].system, need);
    pools[host + " " + std::to_string(left[r].control_group_id)].add(r, left[r].control_group, need);
  }
  for (const auto& [name, pool] : pools) {
    if (pool.need <= pool.left || pool.need <= always_fits) continue;
    throw Error("not enough memory for the slots of the channels: rank " + std::to_string(pool.most) + " needs " +
                megabytes(need[pool.most]) + ", all " + std::to_string(pool.ranks) + " rank(s) of its machine " +
                megabytes(pool.need) + " together, and " + megabytes(pool.left) +
                " were available there or in their control group; use smaller arrays, fewer ranks on a machine, or a "
                "smaller slot_bytes");
  }
}

Reservation::Reservation(GroupState& group, std::int64_t bytes, const std::string& what)
    : page_(group.pages[static_cast<std::size_t>(group.rank)].memory), bytes_(bytes) {
  page().about_to_take.fetch_add(bytes_, std::memory_order_seq_cst);
  if (bytes_ <= always_fits) return;
  // After telling the own one: of two ranks at least one sees the other.
  std::int64_t others = 0;
  for (int r = 0; r < group.size; ++r) {
    const RankPage* const other = group.pages[static_cast<std::size_t>(r)].page;
    if (r != group.rank && other != nullptr && other->left.load() == 0)
      others = sum(others, other->about_to_take.load(std::memory_order_seq_cst));
  }
  const std::int64_t there = available_memory();
  if (sum(bytes_, others) <= there) return;
  used(bytes_);
  throw Error("not enough memory for " + what + ": " + megabytes(bytes) + " asked for on rank " +
              std::to_string(group.rank) + ", " + megabytes(sum(bytes, others)) +
              " with what the other ranks of this machine are about to take, and " + megabytes(there) +
              " available on this machine or in its control group; use smaller arrays, or fewer ranks here");
}

Reservation::~Reservation() { used(bytes_); }

void Reservation::used(std::int64_t bytes) noexcept {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  page().about_to_take.fetch_sub(bytes, std::memory_order_seq_cst);
}

}  // namespace onehop::detail
