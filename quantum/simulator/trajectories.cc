// Divides the histories of a noisy circuit over groups of ranks and over threads, and collects the results.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "onehop/error.h"
#include "onehop/quantum/placement.h"
#include "quantum/simulator/trajectory_walk.h"
#include "quantum/simulator/walk.h"
#include "src/base/clock.h"
#include "src/base/one_size.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

// A walk wants a history, a branch of it, and the state at the beginning of a stretch. More states save work where
// histories branch off branches.
constexpr std::int64_t wanted_states = 3;
constexpr std::int64_t most_states = 8;

// How the ranks of a group divide the work.
struct Division {
  int ranks = 1;           // that share a state
  int threads = 1;         // workers of this rank, each with one thread; 1: one worker with all threads
  std::size_t states = 1;  // of a worker
};

// The bytes that every rank may use for states: the smallest of all ranks.
std::int64_t memory_of(const Group& group, const ProgramOptions& options) {
  if (options.state.device != "cpu") group.barrier();  // memory of cards is free once all ranks have left it
  std::int64_t mine = options.memory;
  if (mine <= 0) {
    mine = memory_need(1, 1, options.precision, 1, options.state).available / 2;
    const bool of_card = options.state.device.starts_with("cuda") || options.state.device.starts_with("hip");
    if (!of_card) mine /= static_cast<std::int64_t>(group.local_ranks().size());
  }
  return std::ranges::min(base::values_of_all(group, mine));
}

Division divide(const Program& program, const Group& group, const ProgramOptions& options, int threads) {
  Division division;
  const std::int64_t memory = memory_of(group, options);
  const int most = usable_ranks(widest(program, false), group.size());
  const auto bytes_of = [&](int ranks) {
    return memory_need(program.circuit.qubits, ranks, options.precision, 1, options.state).per_rank;
  };
  while (division.ranks < most && bytes_of(division.ranks) > memory / wanted_states) division.ranks *= 2;
  const std::int64_t affordable =
      std::max<std::int64_t>(1, memory / std::max<std::int64_t>(1, bytes_of(division.ranks)));
  if (division.ranks == 1 && affordable >= wanted_states * threads && options.state.device == "cpu" &&
      std::max(options.trajectories, options.shots) > 1) {
    division.threads = threads;
  }
  division.states = static_cast<std::size_t>(std::clamp<std::int64_t>(affordable / division.threads, 1, most_states));
  return division;
}

// The histories and outcomes of a group of ranks, as numbers to send.
std::vector<std::uint64_t> pack(const std::vector<std::unique_ptr<TrajectoryWalk>>& walks, std::size_t words) {
  std::vector<std::uint64_t> numbers{0, 0};
  for (const auto& walk : walks) {
    numbers[0] += walk->histories.size();
    for (const Run& history : walk->histories) {
      numbers.push_back(history.first);
      numbers.push_back(static_cast<std::uint64_t>(history.count));
      for (const auto& value : history.values) {
        numbers.push_back(std::bit_cast<std::uint64_t>(value.real()));
        numbers.push_back(std::bit_cast<std::uint64_t>(value.imag()));
      }
    }
  }
  for (const auto& walk : walks) {
    numbers[1] += walk->shots.size();
    for (std::size_t s = 0; s < walk->shots.size(); ++s) {
      numbers.push_back(walk->shots[s]);
      for (std::size_t w = 0; w < words; ++w) numbers.push_back(walk->outcomes[s * words + w]);
    }
  }
  return numbers;
}

void unpack(std::span<const std::byte> bytes, std::size_t values, std::size_t words, std::vector<Run>& histories,
            std::vector<std::uint64_t>& outcomes) {
  std::vector<std::uint64_t> numbers(bytes.size() / sizeof(std::uint64_t));
  if (numbers.empty()) return;
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  auto next = numbers.begin() + 2;
  for (std::uint64_t h = 0; h < numbers[0]; ++h) {
    Run history;
    history.first = *next++;
    history.count = static_cast<std::int64_t>(*next++);
    for (std::size_t v = 0; v < values; ++v) {
      const auto re = std::bit_cast<double>(*next++);
      const auto im = std::bit_cast<double>(*next++);
      history.values.emplace_back(re, im);
    }
    histories.push_back(std::move(history));
  }
  for (std::uint64_t s = 0; s < numbers[1]; ++s) {
    const std::uint64_t shot = *next++;
    std::copy_n(next, words, outcomes.begin() + static_cast<std::ptrdiff_t>(shot * words));
    next += static_cast<std::ptrdiff_t>(words);
  }
}

}  // namespace

SimulationResult run_histories(const SplitProgram& split, const Group& group, const ProgramOptions& options) {
  const double begin = base::steady_seconds();
  const NoisyProgram program(split.body);
  const int threads = base::thread_count(options.state.threads, group);
  const Division division = divide(split.body, group, options, threads);
  // Ranks that do not fill a group compute nothing.
  const int groups = group.size() / division.ranks;
  const int number = group.rank() / division.ranks;
  const bool works = number < groups;
  const Group part = division.ranks == 1 ? Group::alone() : group.split(number, group.rank());

  SimulationResult result;
  Shots shots(split.bits, options.shots);
  std::vector<std::uint64_t> outcomes(shots.words().size());
  const auto words = static_cast<std::size_t>(split.bits + 63) / 64;
  result.ranks = division.ranks;
  result.workers = groups * division.threads;
  const std::int64_t trajectories =
      options.trajectories > 0 ? options.trajectories : std::max<std::int64_t>(options.shots, 1);
  std::vector<std::vector<NoiseEvent>> events(static_cast<std::size_t>(trajectories));
  base::parallel_for(threads, events.size(), 64, [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t t = first; t < last; ++t) events[t] = program.draw(options.seed, t);
  });
  std::vector<std::unique_ptr<TrajectoryWalk>> walks;
  if (works) {
    StateOptions of_states = options.state;
    of_states.threads = division.threads > 1 ? 1 : threads;
    for (int t = 0; t < division.threads; ++t) {
      const TrajectoryWalk::Share share{number * division.threads + t, groups * division.threads};
      // Threads have groups of their own.
      const Group own = division.ranks == 1 ? Group::alone() : part;
      walks.push_back(
          std::make_unique<TrajectoryWalk>(program, split, own, options, of_states, division.states, share));
    }
    base::ThreadPool(division.threads, base::WaitStyle::sleep).run([&](int t) {
      walks[static_cast<std::size_t>(t)]->run(events);
    });
  }
  std::vector<std::uint64_t> mine;
  if (works && part.rank() == 0) mine = pack(walks, words);
  for (const auto& bytes : group.allgather(std::as_bytes(std::span(mine)))) {
    unpack(bytes, options.observables.size(), words, result.made, outcomes);
  }
  std::sort(result.made.begin(), result.made.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  result.runs = static_cast<std::int64_t>(result.made.size());
  shots.set_words(outcomes);
  result.outcomes = shots.outcomes();
  StateCounters counters;
  for (const auto& walk : walks) counters.add(walk->counters());
  count_traffic(result, counters, group);
  if (!walks.empty()) result.factors.push_back({walks.front()->take_state(), {}});
  result.seconds = base::steady_seconds() - begin;
  return result;
}

}  // namespace onehop::quantum
