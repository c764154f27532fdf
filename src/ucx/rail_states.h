// Which of the rails between this rank and each other one work: those on which the two hear each other. Each tells the
// other in its signs of life where it hears it, so both find the same rails to work, also if a network loses the
// packets of one direction only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/ucx/rail.h"

namespace onehop::detail::ucx {

class RailStates {
 public:
  static constexpr std::size_t most_rails = 63;
  // A rail is down after so many looks that found signs of life on others only.
  static constexpr int most_missed = 3;
  // Seconds from the failure of the last connection on which a rank was heard, or of all connections, to its loss: it
  // may have closed one only because it makes it anew.
  static constexpr double grace = 2;
  static constexpr double grace_failed = 0.7;
  [[nodiscard]] static constexpr std::uint64_t bit(std::size_t rail) { return std::uint64_t{1} << rail; }

  explicit RailStates(int ranks) : peers_(static_cast<std::size_t>(ranks)) {}

  void set_rails(int rank, std::size_t rails);
  [[nodiscard]] int rails(int rank) const noexcept { return peer(rank).rails; }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(peers_.size()); }
  // A bit for each rail to the rank. There is always one: if all seem to be down, those stay that worked last.
  [[nodiscard]] std::uint64_t working(int rank) const noexcept { return peer(rank).working; }
  // Where this rank hears the other one. It and lost() may be called at any time, all others by one thread at a time.
  [[nodiscard]] std::uint64_t heard(int rank) const noexcept {
    return peer(rank).heard.load(std::memory_order_relaxed);
  }

  // Whether the rank is lost. With one rail it is once that fails.
  [[nodiscard]] bool lost(int rank) const noexcept { return peer(rank).lost.load(std::memory_order_acquire); }

  void give_up(int rank) noexcept { peer(rank).lost.store(true, std::memory_order_release); }
  // Notes what has arrived on each rail since the last look.
  void look(int rank, std::span<const Look> looks, double now) noexcept;
  // Takes a sign of life. Returns whether it says something new.
  bool take(const Sign& sign) noexcept;
  // Only these rails work, from now on.
  void keep_only(int rank, std::uint64_t rails) noexcept { peer(rank).working = rails; }
  // Decides anew which rails work.
  void decide(int rank) noexcept;

 private:
  struct Peer {
    int rails = 1;
    std::atomic<std::uint64_t> heard{1};
    std::atomic<bool> lost{false};
    double unheard_since = 0;                 // a connection failed then, and nothing was heard since; 0: no
    double failed_since = 0;                  // the same of all connections
    std::uint64_t hears = ~std::uint64_t{0};  // where it hears this rank, as its last sign says
    std::uint32_t number = 0;                 // of that sign
    std::uint64_t working = 1;
    std::vector<int> missed;  // by rail: looks that found signs on others since something arrived on this one
  };
  [[nodiscard]] Peer& peer(int rank) noexcept { return peers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Peer& peer(int rank) const noexcept { return peers_[static_cast<std::size_t>(rank)]; }

  std::vector<Peer> peers_;
};

}  // namespace onehop::detail::ucx
