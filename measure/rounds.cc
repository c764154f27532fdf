#include "measure/rounds.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "src/base/clock.h"
#include "src/base/cpu.h"

namespace onehop::measure {
namespace {

// When a block began and ended, in µs of the clock that all ranks share.
struct Span {
  double begin = 0;
  double end = 0;
};

Span time_block(Arena& arena, const Candidate& candidate, int repetitions) {
  arena.barrier();
  Span span;
  if (candidate.timed) {
    span = {0, candidate.timed(repetitions)};
  } else {
    const double begin = base::steady_seconds();
    candidate.block(repetitions);
    span = {begin * 1e6, base::steady_seconds() * 1e6};
  }
  // A long message of MPI is complete only when its sender calls MPI again. A rank that went on to a candidate that is
  // not MPI would wait for a peer that still waits for that message.
  if (!arena.one_host()) arena.barrier();
  return span;
}

// An operation of this length is a block by itself: caches keep nothing that a previous run could have left in them.
constexpr double long_us = 20e3;

// Returns the repetitions for which a block takes about `block_us`: at least 2, unless the operation is long.
int repetitions_for(Arena& arena, const Candidate& candidate, double block_us) {
  constexpr int max_repetitions = 1 << 20;
  int repetitions = 1;
  candidate.block(1);
  const Span once = time_block(arena, candidate, 1);
  if (arena.agree(once.end - once.begin > long_us ? 1 : 0) == 1) return 1;
  for (;;) {
    const Span span = time_block(arena, candidate, repetitions);
    const double us = span.end - span.begin;
    const double factor = std::clamp(block_us / std::max(us, 0.01), 0.0, 8.0);
    const int next = std::clamp(static_cast<int>(repetitions * factor), 2, max_repetitions);
    const bool done = factor < 1.5 || next >= max_repetitions;
    repetitions = static_cast<int>(arena.agree(done ? -next : next));
    if (repetitions < 0) return -repetitions;
  }
}

// Times from the first rank's beginning to the last one's end: on a shared core, one may begin when another has ended.
std::vector<double> over_all_ranks(const Arena& arena, const std::vector<Span>& spans) {
  const Gathered all = arena.group().allgather(std::as_bytes(std::span<const Span>(spans)));
  std::vector<double> us;
  for (std::size_t r = 0; r < spans.size(); ++r) {
    Span widest = spans[r];
    double longest = 0;
    for (const auto& part : all) {
      Span other;
      std::memcpy(&other, part.data() + r * sizeof other, sizeof other);
      widest = {std::min(widest.begin, other.begin), std::max(widest.end, other.end)};
      longest = std::max(longest, other.end - other.begin);
    }
    us.push_back(arena.one_host() ? widest.end - widest.begin : longest);
  }
  return us;
}

}  // namespace

std::vector<detail::SharedMemory> memory_of_all(const Group& group, std::int64_t bytes) {
  struct Where {
    pid_t pid = 0;
    int fd = -1;
    std::int64_t bytes = 0;
  };
  std::vector<detail::SharedMemory> memories(static_cast<std::size_t>(group.size()));
  detail::SharedMemory& own = memories[static_cast<std::size_t>(group.rank())];
  if (bytes > 0) own = detail::SharedMemory::create(bytes, "memory of a benchmark");
  const Where where{getpid(), bytes > 0 ? own.fd() : -1, bytes};
  const Gathered all = group.allgather(std::as_bytes(std::span<const Where>(&where, 1)));
  for (std::size_t r = 0; r < memories.size(); ++r) {
    Where other;
    std::memcpy(&other, all[r].data(), sizeof other);
    if (&memories[r] != &own && other.bytes > 0) {
      memories[r] = detail::SharedMemory::open(other.pid, other.fd, other.bytes);
    }
  }
  group.barrier();
  return memories;
}

struct Arena::Page {
  alignas(128) std::atomic<int> arrived;
  alignas(128) std::atomic<std::uint32_t> generation;
  alignas(128) std::atomic<std::int64_t> word;
};

Arena::Arena(const Group& group) : group_(group), rank_(group.rank()), size_(group.size()) {
  if (group.local_ranks().size() == static_cast<std::size_t>(size_)) {
    memory_ = std::move(memory_of_all(group, rank_ == 0 ? 4096 : 0).front());
    page_ = reinterpret_cast<Page*>(memory_.data());
  } else if (why_no_mpi_peers(group).empty()) {
    world_ = MpiWorld::make();
  }
}

void Arena::barrier() {
  if (!one_host()) {
    world_ ? world_->barrier() : group_.barrier();
    return;
  }
  const std::uint32_t generation = page_->generation.load(std::memory_order_acquire);
  if (page_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    page_->arrived.store(0, std::memory_order_relaxed);
    page_->generation.store(generation + 1, std::memory_order_release);
    return;
  }
  constexpr int spins = 2000;
  for (int polls = 0; page_->generation.load(std::memory_order_acquire) == generation; ++polls) {
    cpu::pause();
    if (polls > spins) sched_yield();
  }
}

std::int64_t Arena::agree(std::int64_t value) {
  if (!one_host()) {
    const Gathered all = group_.allgather(std::as_bytes(std::span<const std::int64_t>(&value, 1)));
    std::memcpy(&value, all[0].data(), sizeof value);
    return value;
  }
  if (rank_ == 0) page_->word.store(value, std::memory_order_relaxed);
  barrier();
  const std::int64_t agreed = page_->word.load(std::memory_order_relaxed);
  barrier();
  return agreed;
}

const char* to_string(Role role) {
  switch (role) {
    case Role::ours:
      return "ours";
    case Role::variant:
      return "variant";
    case Role::peer:
      return "peer";
    case Role::speed_of_light:
      return "speed_of_light";
  }
  return "";
}

std::vector<Samples> run_rounds(Arena& arena, const std::vector<Candidate>& candidates, const Effort& effort) {
  const std::size_t count = candidates.size();
  std::vector<int> repetitions;
  double round_us = 0;
  for (const Candidate& candidate : candidates) {
    repetitions.push_back(repetitions_for(arena, candidate, effort.block_us));
    const Span span = time_block(arena, candidate, repetitions.back() + (repetitions.back() > 1 ? 1 : 0));
    round_us += span.end - span.begin;
  }
  const auto affordable = static_cast<std::int64_t>(effort.seconds * 1e6 / std::max(round_us, 1.0));
  const auto rounds = static_cast<std::size_t>(
      arena.agree(std::clamp(affordable, std::int64_t{effort.min_rounds}, std::int64_t{effort.max_rounds})));

  std::vector<std::vector<Span>> spans(count, std::vector<Span>(rounds));
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t who = (turn + round) % count;
      // Bring its memory, which may be two slots in turn, back into the caches: the others have used them since.
      if (repetitions[who] > 1) candidates[who].block(2);
      spans[who][round] = time_block(arena, candidates[who], repetitions[who]);
    }
  }
  std::vector<Samples> samples;
  for (std::size_t who = 0; who < count; ++who) {
    Samples one{candidates[who].name, candidates[who].role, over_all_ranks(arena, spans[who])};
    for (double& us : one.us) us *= candidates[who].scale / repetitions[who];
    samples.push_back(std::move(one));
  }
  return samples;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Candidate fastest_variant(Arena& arena, std::vector<Candidate> variants, const Effort& effort) {
  std::size_t best = 0;
  if (variants.size() > 1) {
    Effort search = effort;
    search.seconds = effort.seconds / 4;
    search.block_us = effort.block_us / 4;
    const std::vector<Samples> samples = run_rounds(arena, variants, search);
    for (std::size_t i = 1; i < samples.size(); ++i) {
      if (median(samples[i].us) < median(samples[best].us)) best = i;
    }
  }
  Candidate chosen = std::move(variants[best]);
  chosen.name = "speed of light: " + chosen.name;
  return chosen;
}

}  // namespace onehop::measure
