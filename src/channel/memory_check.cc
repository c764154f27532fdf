#include "src/channel/memory_check.h"

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

}  // namespace onehop::detail
