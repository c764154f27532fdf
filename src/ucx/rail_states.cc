#include "src/ucx/rail_states.h"

#include <algorithm>
#include <utility>

namespace onehop::detail::ucx {

void RailStates::set_rails(int rank, std::size_t rails) {
  Peer& to = peer(rank);
  to.rails = static_cast<int>(rails);
  to.working = bit(rails) - 1;
  to.heard.store(to.working, std::memory_order_relaxed);
  to.missed.assign(rails, 0);
}

// Silence on all rails says nothing about one of them. The signs on a rail count at most once a look: a process that
// was stopped finds many at once.
void RailStates::look(int rank, std::span<const Look> looks, double now) noexcept {
  Peer& from = peer(rank);
  const bool all_failed = std::ranges::all_of(looks, &Look::failed);
  const auto lasts = [now](double& since, bool is, double limit) {
    since = !is ? 0 : since == 0 ? now : since;
    return is && now - since > limit;
  };
  if (looks.size() < 2 || std::ranges::any_of(looks, &Look::leaves)) {
    // A rank that leaves closes its connections. One on a rail that is down does not show it.
    const bool closed = std::ranges::any_of(looks, [](const Look& one) { return one.leaves && one.failed; }) &&
                        std::ranges::none_of(looks, &Look::heard);
    if (all_failed || lasts(from.failed_since, closed, grace)) give_up(rank);
    return;
  }
  const bool signs = std::ranges::any_of(looks, &Look::sign);
  std::uint64_t heard = from.heard.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    from.missed[i] = looks[i].heard ? 0 : from.missed[i] + (signs ? 1 : 0);
    if (looks[i].failed || from.missed[i] >= most_missed) {
      heard &= ~bit(i);
    } else if (looks[i].heard) {
      heard |= bit(i);
    }
  }
  from.heard.store(heard, std::memory_order_relaxed);
  const bool any_failed = std::ranges::any_of(looks, &Look::failed);
  const bool unheard = heard == 0 && (any_failed || from.unheard_since != 0);
  const bool is_lost = lasts(from.failed_since, all_failed, grace_failed);
  if (lasts(from.unheard_since, unheard, grace) || is_lost) give_up(rank);
}

bool RailStates::take(const Sign& sign) noexcept {
  if (sign.from < 0 || sign.from >= ranks()) return false;
  Peer& from = peer(sign.from);
  if (static_cast<std::int32_t>(sign.number - from.number) <= 0) return false;  // a later one has overtaken it
  from.number = sign.number;
  return std::exchange(from.hears, sign.hears) != sign.hears;
}

void RailStates::decide(int rank) noexcept {
  Peer& to = peer(rank);
  const std::uint64_t both = heard(rank) & to.hears & (bit(static_cast<std::size_t>(to.rails)) - 1);
  if (both != 0) to.working = both;
}

}  // namespace onehop::detail::ucx
