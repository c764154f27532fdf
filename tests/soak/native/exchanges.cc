// Trials that run random schedules many times and compare every byte.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "onehop/schedule.h"
#include "tests/soak/native/compared.h"
#include "tests/soak/native/processes.h"
#include "tests/soak/native/schedules.h"
#include "tests/soak/native/traced.h"
#include "tests/soak/native/trials.h"

namespace onehop::soak {
namespace {

// Plans of different schedules, all of them in flight at once. So ranks that share a core change places once for all of
// them, and a message of one plan meets those of others.
class Window {
 public:
  // Collective. `crowded` ranks share a core: they wait for all plans at once, and give way.
  Window(const Group& group, std::uint64_t seed, int width, bool crowded)
      : crowded_(crowded),
        ways_(mix(seed, static_cast<std::uint64_t>(1 + group.rank()))),
        order_(static_cast<std::size_t>(width)) {
    for (int k = 0; k < width; ++k) {
      const std::uint64_t own = mix(seed, static_cast<std::uint64_t>(1000 + k));
      Source draws(own);
      Schedule schedule = random_schedule(draws, group.size());
      while (!only_moves(schedule)) schedule = random_schedule(draws, group.size());
      parts_.push_back(std::make_unique<Traced>(group, schedule, own, draws));
      bytes_ += parts_.back()->bytes();
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  // An exchange by each plan. The ranks draw different ways.
  void step(std::uint64_t number) {
    for (const auto& part : parts_) part->renew(number);
    pause_seldom(ways_);
    const std::int64_t way = ways_.below(16);
    if (way == 0 || parts_.size() == 1) {
      for (const auto& part : parts_) part->run(static_cast<std::uint64_t>(ways_.below(15)));
    } else if (way < (crowded_ ? 2 : 8)) {
      for (const auto& part : parts_) part->start();
      for (const auto& part : parts_) part->finish();
    } else {
      // In an order of this rank, which is another one each time.
      std::swap(order_[static_cast<std::size_t>(ways_.below(size()))],
                order_[static_cast<std::size_t>(ways_.below(size()))]);
      for (const std::size_t k : order_) parts_[k]->start();
      poll();
    }
    for (const auto& part : parts_) part->check(number);
  }

  void spoil() { parts_.back()->spoil(); }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(parts_.size()); }
  // Of the arrays of all ranks and schedules.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  // Tests the plans in turn until all are complete. After some tests in vain, finish() waits, in the order of all
  // ranks.
  void poll() {
    std::vector<std::size_t> open = order_;
    for (std::int64_t passes = ways_.below(20); passes >= 0 && !open.empty(); --passes) {
      std::erase_if(open, [&](std::size_t k) { return parts_[k]->test(); });
      if (crowded_ && !open.empty()) std::this_thread::yield();
    }
    for (const auto& part : parts_) part->finish();
  }

  bool crowded_;
  Source ways_;
  std::int64_t bytes_ = 0;
  std::vector<std::unique_ptr<Traced>> parts_;
  std::vector<std::size_t> order_;
};

// Four of five batches only move elements, whose runs cost least. `crowded` ranks make fewer runs, except for many
// plans at once. Returns the number of schedules.
int run_batch(const Group& group, Report& report, std::uint64_t seed, bool crowded, bool plant) {
  Source draws(seed);
  if (draws.below(5) > 0) {
    const int width = crowded ? draws.one_of({1, 8, 32, 64, 64, 64}) : draws.one_of({1, 4, 8, 16, 32, 64});
    Window window(group, seed, width, crowded);
    const std::int64_t steps = 800'000'000 / (600 * width + window.bytes()) / (width > 8 ? 1 : crowded ? 32 : 4);
    repeat(
        report, steps, width, [&](std::uint64_t number) { window.step(number); },
        [&] { plant ? window.spoil() : void(); });
    return width;
  }
  Compared compared(group, random_schedule(draws, group.size()), seed, draws);
  repeat(
      report, 4'000'000 / (1000 + compared.bytes()) / (crowded ? 5 : 1), 1,
      [&](std::uint64_t run) { compared.run(run); }, [&] { plant ? compared.spoil() : void(); });
  return 1;
}

// That this process may use.
int cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("cannot read the affinity");
  return CPU_COUNT(&set);
}

}  // namespace

Counts exchanges(std::uint64_t seed, int batches, bool plant) {
  Source source(seed);
  const int size = source.one_of({2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4});
  const bool one_core = source.below(6) == 0;
  const bool crowded = one_core || cores() < size;
  return run_batches({size, one_core, batches, [&](const Group& group, Report& report, int number) {
                        const std::uint64_t own = mix(seed, static_cast<std::uint64_t>(number));
                        report.schedules += run_batch(group, report, own, crowded, plant);
                      }});
}

}  // namespace onehop::soak
