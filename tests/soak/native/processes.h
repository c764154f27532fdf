// Ranks as forked processes that report through shared memory, and how they ended.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onehop/group.h"
#include "tests/soak/native/trials.h"

namespace onehop::soak {

enum class Outcome : std::uint8_t { none, done, lost, wrong };

// What one rank reports. It stays readable after the rank was killed.
struct Report {
  std::atomic<bool> at_work = false;
  std::atomic<std::int64_t> exchanges = 0;
  std::atomic<int> schedules = 0;          // that these exchanges repeated
  std::atomic<std::int64_t> adaptive = 0;  // of these exchanges: over a sender that chooses its stores
  std::atomic<Outcome> outcome = Outcome::none;
  int lost_rank = -1;                         // the rank of the world that PeerLost named
  std::uint64_t members = ~std::uint64_t{0};  // a bit for each rank of the world that is in the group that lost it
  double when = 0;                            // steady clock: of PeerLost, or of the rank's own fault
  std::array<char, 1000> text{};

  void say(Outcome what, const char* words) noexcept;
};

// Thrown by a rank that ends with the fault of the trial.
struct OwnFault {};

using RankMain = std::function<void(const Group&, Report&)>;

// The ranks of one trial. Ranks that still run are killed when this object goes.
class Processes {
 public:
  // Forks `ranks` ranks, each with a group made as `onehop launch` makes it. With `one_core` they all run on the same
  // core, where a rank that waits must give way.
  Processes(int ranks, bool one_core, const RankMain& rank_main);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  [[nodiscard]] const Report& report(int rank) const { return reports_[rank]; }
  [[nodiscard]] int size() const { return static_cast<int>(pids_.size()); }
  void signal(int rank, int number) const;
  // Whether all ranks have come to their work within a time.
  [[nodiscard]] bool all_at_work(double seconds) const;
  // Waits until all ranks have ended. Throws std::logic_error if none has made an exchange, nor ended, for `seconds`.
  void wait(double seconds);
  // As waitpid returns it.
  [[nodiscard]] int status(int rank) const { return statuses_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::string describe() const;

 private:
  // Kills the ranks that still run, and gives the memory back.
  void end();

  struct Control;
  Control* control_;
  Report* reports_;
  std::vector<pid_t> pids_;  // 0: has ended
  std::vector<int> statuses_;
};

// Without progress of any rank for so long, a trial hangs.
inline constexpr double hang_seconds = 60;

[[nodiscard]] double steady_seconds();
void nap(double seconds);
// Throws std::logic_error, which describes an anomaly.
void expect(bool holds, const std::string& what);
// Of this process.
[[nodiscard]] std::int64_t open_descriptors();

// Ranks that run batches, of which each counts what it does; all must count the same, and leave nothing behind.
struct Batches {
  int ranks;
  bool one_core;
  int count;
  std::function<void(const Group&, Report&, int number)> run;
};
[[nodiscard]] Counts run_batches(const Batches& batches);

// Calls `step` for each number below `steps`, and counts `each` exchanges per step; calls `spoil` in the midst.
template <class Step, class Spoil>
void repeat(Report& report, std::int64_t steps, std::int64_t each, Step&& step, Spoil&& spoil) {
  constexpr std::int64_t often = 64;
  for (std::int64_t number = 0; number < steps; ++number) {
    if (number == steps / 2) spoil();
    step(static_cast<std::uint64_t>(number));
    if (number % often == often - 1) report.exchanges.fetch_add(often * each, std::memory_order_relaxed);
  }
  report.exchanges.fetch_add(steps % often * each, std::memory_order_relaxed);
}

}  // namespace onehop::soak
