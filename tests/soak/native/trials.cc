#include "tests/soak/native/trials.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "onehop/channel.h"
#include "onehop/collectives/collectives.h"
#include "onehop/plan.h"
#include "tests/soak/native/compared.h"
#include "tests/soak/native/processes.h"
#include "tests/soak/native/schedules.h"
#include "tests/soak/native/split_work.h"

namespace onehop::soak {
namespace {

constexpr double promised_seconds = 5;  // usually 0.05, at most 2; more on a machine that does other work

// Work of the ranks of a fault: a step is repeated until a peer is lost.

using Step = std::function<void()>;

Step plan_steps(const Group& group, std::uint64_t seed) {
  Source source(seed);
  const Schedule schedule = random_schedule(source, group.size());
  // Two ranks that no transfer joins learn of each other's end only in the barrier.
  return [run = checked_runs(group, schedule, seed, source), number = std::uint64_t{0}, group]() mutable {
    run(number++);
    if (number % 64 == 0) group.barrier();
  };
}

Step channel_steps(const Group& group, std::uint64_t seed) {
  using Direction = ChannelSpec::Direction;
  Source source(seed);
  const std::int64_t bytes = source.one_of<std::int64_t>({8, 1000, 1 << 17});  // multiples of 8
  const std::int64_t slot = source.one_of<std::int64_t>({0, 4096});
  const int right = (group.rank() + 1) % group.size();
  const int left = (group.rank() + group.size() - 1) % group.size();
  const std::vector<ChannelSpec> specs = {
      {.direction = Direction::send, .peer = right, .bytes = bytes, .slot_bytes = slot},
      {.direction = Direction::receive, .peer = left, .bytes = bytes}};
  const auto ends = std::make_shared<Channels>(open_channels(group, specs));
  const auto message = std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>(bytes / 8));
  return [ends, message, rank = group.rank(), step = std::uint64_t{0}, seed]() mutable {
    // Rank 0 begins; the others pass the message on. It ends where it began, and must have the same bytes.
    const auto space = std::as_writable_bytes(std::span(*message));
    if (rank == 0) {
      const std::uint64_t first = mix(seed, step);
      std::iota(message->begin(), message->end(), first);
      ends->senders[0].put(space);
      std::fill(message->begin(), message->end(), 0);
      ends->receivers[0].get(space);
      for (std::size_t i = 0; i < message->size(); ++i) {
        if ((*message)[i] != first + i)
          throw std::logic_error("wrong bytes came around the ring in step " + std::to_string(step));
      }
    } else {
      ends->receivers[0].get(space);
      ends->senders[0].put(space);
    }
    ++step;
  };
}

Step reduce_steps(const Group& group, std::uint64_t seed) {
  Source source(seed);
  collectives::Reduction what;
  what.elements = source.one_of<std::int64_t>({1, 100, 10'000});
  what.type = ElementType::int64;
  what.algorithm = source.one_of({ReduceAlgorithm::automatic, ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot});
  const auto all = std::make_shared<collectives::Collectives>(group);
  const auto reduce = std::make_shared<collectives::Collective>(all->allreduce(what));
  const auto values = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(what.elements));
  return [all, reduce, values, group, count = what.elements, step = std::int64_t{0}]() mutable {
    // Every element of every rank is another number.
    std::iota(values->begin(), values->end(), step + group.rank() * count);
    const auto bytes = std::as_writable_bytes(std::span(*values));
    reduce->run(bytes, bytes);
    const std::int64_t sum = group.size() * step + count * (group.size() * (group.size() - 1) / 2);
    for (std::int64_t i = 0; i < count; ++i) {
      if ((*values)[static_cast<std::size_t>(i)] != sum + group.size() * i)
        throw std::logic_error("a wrong sum in step " + std::to_string(step));
    }
    ++step;
  };
}

Step random_work(const Group& group, std::uint64_t seed) {
  switch (mix(seed, 1) % 6) {
    case 0:
    case 1:
      return plan_steps(group, seed);
    case 2:
      return channel_steps(group, seed);
    case 3:
      return reduce_steps(group, seed);
    case 4:
      return [group] { group.barrier(); };
    default:  // preparation: plans are made and dropped all the time
      return [group, number = std::uint64_t{0}, seed]() mutable {
        const Step run = plan_steps(group, mix(seed, number++));
        run();
      };
  }
}

// The fault of one trial.
struct Draw {
  int ranks, victim;
  int other = -1;  // the second rank that is killed, if any
  Fault::Kind kind;
  bool early;    // killed at any moment from the fork on, or once all ranks are at work
  double delay;  // seconds
  double stopped;
  bool one_core;
  std::int64_t step;  // of a rank that leaves or throws
  bool splits;        // whether ranks work in groups that are split from the world

  [[nodiscard]] bool is_victim(int rank) const { return rank == victim || rank == other; }
  // Whether the report of another rank blames a victim.
  [[nodiscard]] bool is_named_by(const Report& report) const {
    if (is_victim(report.lost_rank)) return true;
    const auto is_blamed = [&](int rank) {
      return rank >= 0 &&
             std::string(report.text.data()).find("had lost rank " + std::to_string(rank) + " of the world before") !=
                 std::string::npos;
    };
    const auto is_member = [&](int rank) { return rank >= 0 && (report.members >> rank & 1) != 0; };
    return !is_member(victim) && !is_member(other) && (is_blamed(victim) || is_blamed(other));
  }
  [[nodiscard]] bool own() const { return kind == Fault::Kind::exit || kind == Fault::Kind::exception; }
};

Draw draw(std::uint64_t seed, bool splits) {
  Source source(seed);
  Draw one{};
  one.splits = splits;
  one.ranks = splits ? source.one_of({3, 4, 4}) : source.one_of({2, 2, 3, 4});
  one.victim = static_cast<int>(source.below(one.ranks));
  using enum Fault::Kind;
  one.kind = source.one_of({kill, kill, kill, kill, kill, kill, stop, exit, exception, two_kills});
  if (one.kind == two_kills && one.ranks == 2) one.kind = kill;
  one.other = one.kind == two_kills ? (one.victim + 1 + static_cast<int>(source.below(one.ranks - 1))) % one.ranks : -1;
  one.early = source.below(4) == 0;
  one.delay = 1e-6 * static_cast<double>(source.below(source.one_of<std::int64_t>({100, 3000, 15'000})));
  one.stopped = 1e-6 * static_cast<double>(source.below(30'000));
  one.step = source.below(source.one_of<std::int64_t>({1, 20, 1000}));
  one.one_core = source.below(4) == 0;
  return one;
}

void be_one_rank(const Group& group, Report& report, const Draw& what, std::uint64_t seed) {
  const Step step = what.splits ? split_steps(group, report, seed) : random_work(group, seed);
  group.barrier();
  report.at_work = true;
  for (std::int64_t number = 0;; ++number) {
    if (what.own() && group.rank() == what.victim && number == what.step) {
      report.when = steady_seconds();
      if (what.kind == Fault::Kind::exit) _exit(7);
      throw OwnFault();
    }
    step();
    report.exchanges.store(number + 1, std::memory_order_relaxed);
  }
}

// Does the fault; returns when.
double strike(const Processes& ranks, const Draw& what) {
  if (!what.early) expect(ranks.all_at_work(hang_seconds), "not all ranks came to work: " + ranks.describe());
  nap(what.delay);
  if (what.kind == Fault::Kind::stop) {
    ranks.signal(what.victim, SIGSTOP);
    nap(what.stopped);
    ranks.signal(what.victim, SIGCONT);
    nap(what.delay);
  }
  const double when = steady_seconds();
  ranks.signal(what.victim, SIGKILL);
  if (what.other >= 0) ranks.signal(what.other, SIGKILL);
  return when;
}

Fault one_fault(const Draw& what, std::uint64_t seed, bool plant) {
  const std::int64_t descriptors = open_descriptors();
  Fault result{what.kind, 0, std::numeric_limits<std::int64_t>::max()};
  {
    Processes ranks(what.ranks, what.one_core,
                    [&](const Group& group, Report& report) { be_one_rank(group, report, what, mix(seed, 2)); });
    double when = what.own() ? 0 : strike(ranks, what);
    ranks.wait(hang_seconds);
    if (what.own()) when = ranks.report(what.victim).when;
    const std::string about = "a fault of kind " + std::to_string(static_cast<int>(what.kind)) + " of rank " +
                              std::to_string(what.victim) + (what.early ? " while ranks meet: " : ": ") +
                              ranks.describe();
    for (int rank = 0; rank < what.ranks; ++rank) {
      const Report& report = ranks.report(rank);
      result.exchanges = std::min<std::int64_t>(result.exchanges, report.exchanges);
      const int status = ranks.status(rank);
      if (what.is_victim(rank)) {
        expect(what.own() ? WIFEXITED(status) && WEXITSTATUS(status) == (what.kind == Fault::Kind::exit ? 7 : 1)
                          : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
               about);
        continue;
      }
      expect(report.outcome == Outcome::lost, "a rank was not told: " + about);
      expect(what.is_named_by(report) != plant, "a wrong rank is named: " + about);
      expect(report.when >= when, "a rank was told of a loss before it: " + about);
      result.told = std::max(result.told, report.when - when);
    }
    expect(result.told < promised_seconds, "told after " + std::to_string(result.told) + " s: " + about);
  }
  expect(open_descriptors() == descriptors, "a descriptor was left open");
  expect(waitpid(-1, nullptr, WNOHANG) == -1, "a process was left behind");
  return result;
}

}  // namespace

Fault fault(std::uint64_t seed, bool plant) { return one_fault(draw(seed, false), seed, plant); }
Fault split_fault(std::uint64_t seed, bool plant) { return one_fault(draw(seed, true), seed, plant); }

}  // namespace onehop::soak
