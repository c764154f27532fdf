// Times several candidates in turn. Each round takes a few milliseconds and gives every candidate one block, so that
// changes of the machine (clock frequency, other load, which caches the cores share) affect all candidates alike. Times
// are medians over the rounds, and a ratio is the median of the rounds' ratios.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/mpi/peers.h"
#include "onehop/group.h"
#include "src/group/shared_memory.h"

namespace onehop::measure {

// Makes `bytes` bytes of memory on each rank, none for 0, and maps those of all others; entry r is the memory of rank
// r. Collective over ranks that share memory.
[[nodiscard]] std::vector<detail::SharedMemory> memory_of_all(const Group& group, std::int64_t bytes);

// Synchronizes the ranks through a page of memory of its own, so that it uses nothing that is being measured; between
// hosts by barriers of MPI, or of the group without MPI.
class Arena {
 public:
  // Collective.
  explicit Arena(const Group& group);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const Group& group() const noexcept { return group_; }

  // Whether all ranks share memory, and so the clock.
  [[nodiscard]] bool one_host() const noexcept { return page_ != nullptr; }

  // On one host all ranks leave it within the time that a cache line takes to travel between them. Spins at first, then
  // yields. Between hosts they leave it within a few messages' time.
  void barrier();

  // Returns rank 0's value. Collective.
  [[nodiscard]] std::int64_t agree(std::int64_t value);

 private:
  struct Page;
  Group group_;
  int rank_;
  int size_;
  std::unique_ptr<MpiWorld> world_;  // between hosts
  detail::SharedMemory memory_;
  Page* page_ = nullptr;
};

enum class Role { ours, variant, peer, speed_of_light };
[[nodiscard]] const char* to_string(Role role);

struct Candidate {
  std::string name;
  Role role = Role::peer;
  std::function<void(int)> block;  // repeats the measured operation this many times; collective
  double scale = 1;                // factor on the time of one repetition: 0.5 turns a round trip into one way
  // Replaces `block` if a block contains more than the measured operation. Returns the measured µs of this rank.
  std::function<double(int)> timed = {};
};

struct Samples {
  std::string name;
  Role role = Role::peer;
  std::vector<double> us;  // per round; entry r of all candidates belongs to the same round
};

struct Effort {
  double seconds = 1;
  double block_us = 400;
  int min_rounds = 5;
  int max_rounds = 4000;
};

// Collective. The time of a block runs from the first rank's beginning to the last rank's end. Between hosts, whose
// clocks differ, it is the longest time of a rank.
[[nodiscard]] std::vector<Samples> run_rounds(Arena& arena, const std::vector<Candidate>& candidates,
                                              const Effort& effort);

[[nodiscard]] double median(std::vector<double> values);

// Returns the fastest of several variants in a short run, with "speed of light: " before its name. Collective.
[[nodiscard]] Candidate fastest_variant(Arena& arena, std::vector<Candidate> variants, const Effort& effort);

}  // namespace onehop::measure
