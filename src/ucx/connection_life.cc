// What connections tell about ranks and rails: signs of life, silence, losses.
#include <algorithm>
#include <array>
#include <cstring>

#include "src/base/clock.h"
#include "src/ucx/connections.h"
#include "src/ucx/ends.h"

namespace onehop::detail::ucx {
namespace {

// Seconds between the signs of life for each connection of a rank with many.
constexpr double for_each_connection = 0.005;

}  // namespace

void Connections::give_signs_of_life() {
  signs_due_.store(false, std::memory_order_relaxed);
  const double now = base::steady_seconds();
  const double period = between_signs_.load(std::memory_order_relaxed);
  const double since = signs_given_ == 0 ? 0 : now - signs_given_;
  signs_given_ = now;
  ++sign_number_;
  std::erase_if(retired_, [](const auto& end) { return end->is_done(); });
  int connections = 0;
  for (const auto& rail : rails_) connections += rail->connections();
  for (int rank = 0; rank < states_.ranks(); ++rank) {
    const auto rails = rails_of(rank);
    const auto connected = [rank](const auto& rail) { return rail->is_connected(rank); };
    if (rank == rank_ || std::ranges::none_of(rails, connected)) continue;
    // A process that was stopped, or had no processor, has heard nothing meanwhile.
    look(rank, now, since > 2 * period ? since : 0);
    const Sign sign{rank_, sign_number_, states_.heard(rank)};
    for (const auto& rail : rails) rail->give_sign(rank, sign);
  }
  const double longest = silence_ > 0 ? std::max(between_signs, silence_ / 4) : 5;
  between_signs_.store(std::clamp(for_each_connection * connections, std::min(between_signs, longest), longest),
                       std::memory_order_relaxed);
}

void Connections::look(int rank, double now, double paused) {
  const auto rails = rails_of(rank);
  std::array<Look, RailStates::most_rails> looks;
  double newest = 0;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    looks[i] = rails[i]->look(rank, now, paused);
    newest = std::max(newest, rails[i]->heard_at(rank));
  }
  if (silence_ > 0 && newest > 0 && now - newest > silence_) {
    for (const auto& rail : rails) rail->fail_silent(rank);
    states_.give_up(rank);
  }
  const std::uint64_t before = states_.working(rank);
  states_.look(rank, std::span(looks).first(rails.size()), now);
  states_.decide(rank);
  const std::uint64_t after = states_.working(rank);
  if (after != before) rails_changed(rank, before, after);
  if (rails.size() == 1 || lost(rank) || std::ranges::any_of(looks, &Look::leaves)) return;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (looks[i].failed || (after & RailStates::bit(i)) == 0) rails[i]->retry(rank, now, looks[i].heard);
  }
}

void Connections::rails_changed(int rank, std::uint64_t before, std::uint64_t after) {
  const auto rails = rails_of(rank);
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const std::uint64_t bit = RailStates::bit(i);
    if (((before ^ after) & bit) == 0) continue;
    const bool works = (after & bit) != 0;
    rails[i]->set_down(rank, !works);
    // Else the rail would make up for the bytes that the others have carried.
    if (works) loads_[i] = *std::ranges::max_element(loads_);
    down_[i] += works ? -1 : 1;
    if (news_ && down_[i] == (works ? 0 : 1)) news_(rails[i]->device(), rank, works);
  }
  if ((before & ~after) != 0) send_again(rank);
}

void Connections::send_again(int rank) {
  for (const auto& inboxes : inboxes_) {
    for (const auto& [key, inbox] : inboxes) {
      if (static_cast<int>(key >> 32) == rank) inbox->send_again();
    }
  }
}

// A group that closes looks no more at signs of life. A rail on which a peer has not confirmed the last messages is
// left out if it has done so on another.
void Connections::leave_unconfirmed_rails() {
  const std::lock_guard guard(mutex_);
  for (int rank = 0; rank < states_.ranks(); ++rank) {
    const auto rails = rails_of(rank);
    std::uint64_t confirmed = 0;
    for (std::size_t i = 0; i < rails.size(); ++i) {
      if (rails[i]->goodbye_said_by(rank)) confirmed |= RailStates::bit(i);
    }
    if (confirmed == 0 || (states_.working(rank) & ~confirmed) == 0) continue;
    states_.keep_only(rank, confirmed);
    send_again(rank);
    for (std::size_t i = 0; i < rails.size(); ++i) {
      const bool works = (confirmed & RailStates::bit(i)) != 0;
      rails[i]->set_down(rank, !works);
      if (works) rails[i]->say_goodbye(rank);
    }
  }
}

void Connections::set_news(RailNews news) {
  const std::lock_guard guard(mutex_);
  news_ = std::move(news);
}

std::string Connections::why_lost(int rank) const {
  for (const auto& rail : rails_of(rank)) {
    if (rail->has_failed(rank)) return rail->failure(rank);
  }
  return "no connection to it can be made any more";
}

// Its own end would otherwise be taken for the first loss by ranks that wait for it.
void Connections::tell(int lost) noexcept {
  last_loss.store(base::steady_seconds(), std::memory_order_relaxed);
  if (!told_.exchange(true, std::memory_order_relaxed)) send_report({rank_, lost, -1});
}

void Connections::tell_elsewhere(int lost) noexcept {
  if (told_elsewhere_.exchange(lost, std::memory_order_relaxed) != lost) send_report({rank_, -1, lost});
}

void Connections::send_report(const LossReport& report) noexcept {
  const std::lock_guard guard(mutex_);
  for (int rank = 0; rank < states_.ranks(); ++rank) {
    if (rank == rank_ || rank == report.lost) continue;
    // On all rails, because one of them may be about to be found down.
    for (const auto& rail : rails_of(rank)) {
      if (rail->is_connected(rank)) rail->send(rank, {Kind::lost, bytes_of(report), {}}, nullptr);
    }
  }
  move();
}

int Connections::unreachable() const noexcept {
  for (int rank = 0; rank < states_.ranks(); ++rank) {
    if (lost(rank)) return rank;
  }
  return -1;
}

int Connections::silent(double seconds) const noexcept {
  const double now = base::steady_seconds();
  for (int rank = 0; rank < states_.ranks(); ++rank) {
    double newest = 0;
    for (const auto& rail : rails_of(rank)) newest = std::max(newest, rail->heard_at(rank));
    if (newest != 0 && now - newest > seconds) return rank;
  }
  return -1;
}

void Connections::hear(const Message& message) noexcept {
  LossReport report;
  if (message.header.size() == sizeof report) std::memcpy(&report, message.header.data(), sizeof report);
  const auto ranks = states_.ranks();
  int none = -1;
  if (report.lost >= 0 && report.lost < ranks && report.lost != rank_)
    heard_.compare_exchange_strong(none, report.lost, std::memory_order_relaxed);
  if (report.elsewhere >= 0 && report.from >= 0 && report.from < ranks)
    heard_elsewhere_[static_cast<std::size_t>(report.from)].store(report.elsewhere, std::memory_order_relaxed);
}

}  // namespace onehop::detail::ucx
