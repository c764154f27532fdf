// Contestants in turn: rounds of a few milliseconds in which each has one block, so that whatever the machine does (frequency,
// neighbours, which caches the cores share) happens to all of them alike. Figures are medians over the rounds, and a ratio is the
// median of the rounds' ratios.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onehop/group.h"
#include "src/group/shared_memory.h"

namespace onehop::bench {

// The ranks' meeting point: a page of memory of its own, so that nothing of what is measured takes part in measuring.
class Arena {
 public:
  // Collective. All ranks of the group must share memory.
  explicit Arena(const Group& group);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const Group& group() const noexcept { return group_; }

  // All ranks leave it within a cache line's travel of each other. Spins, and gives way only after a while.
  void barrier() noexcept;

  // What rank 0 says. Collective.
  [[nodiscard]] std::int64_t agree(std::int64_t value) noexcept;

 private:
  struct Page;
  Group group_;
  int rank_;
  int size_;
  detail::SharedMemory memory_;
  Page* page_;
};

enum class Role { ours, variant, peer, limit };
[[nodiscard]] const char* to_string(Role role);

struct Contestant {
  std::string name;
  Role role = Role::peer;
  std::function<void(int)> block;  // collective: the measured thing so many times
  double scale = 1;                // of the time of one: 0.5 turns a round trip into one way
  // Where more happens in a block than is to be measured: instead of `block`, and returns the measured µs of this rank.
  std::function<double(int)> timed = {};
};

struct Samples {
  std::string name;
  Role role = Role::peer;
  std::vector<double> us;  // per round; entry r of all contestants belongs to the same round
};

struct Effort {
  double seconds = 1;
  double block_us = 400;
  int min_rounds = 5;
  int max_rounds = 4000;
};

// Collective. The time of a block is from the first rank's beginning to the last one's end.
[[nodiscard]] std::vector<Samples> run_rounds(Arena& arena, const std::vector<Contestant>& contestants,
                                              const Effort& effort);

[[nodiscard]] double median(std::vector<double> values);

// A short run over several ways to do the same thing; the fastest is kept, named "limit: ..." after it. Collective.
[[nodiscard]] Contestant best_way(Arena& arena, std::vector<Contestant> ways, const Effort& effort);

}  // namespace onehop::bench
