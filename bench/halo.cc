#include "bench/halo.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "bench/bare_exchange.h"
#include "bench/compute.h"
#include "bench/mpi/peers.h"
#include "bench/packing_lines.h"
#include "onehop/error.h"
#include "onehop/plan.h"
#include "src/base/clock.h"

namespace onehop::bench {
namespace {

// The places that this rank writes before an exchange and reads after it: one word of each line that crosses ranks.
class Marks {
 public:
  Marks(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays) {
    for (const Transfer& transfer : schedule.rounds.at(0).transfers) {
      if (transfer.from.rank == transfer.to.rank) continue;
      const std::vector<std::int64_t> chosen =
          one_a_line(transfer.from.slice, schedule.arrays[at(transfer.from.array)].element_bytes);
      if (transfer.from.rank == rank) add(out_, schedule, transfer.from, chosen, arrays);
      if (transfer.to.rank == rank) add(in_, schedule, transfer.to, chosen, arrays);
    }
    // The rows of two faces may share lines.
    std::ranges::sort(out_, {}, &Row::first);
    std::ranges::sort(in_, {}, &Row::first);
  }

  void dirty() noexcept {
    ++written_;
    for_each(out_, [this](std::byte* place, std::uint64_t number) {
      *reinterpret_cast<volatile std::uint64_t*>(place) = number_from_1_to_2(written_ + number);
    });
  }
  void check(const std::string& candidate) {
    ++checked_;
    std::uint64_t wrong = 0;
    for_each(in_, [&](const std::byte* place, std::uint64_t number) {
      std::uint64_t value;
      std::memcpy(&value, place, sizeof value);
      wrong |= value ^ number_from_1_to_2(checked_ + number);
    });
    if (wrong != 0) [[unlikely]]
      throw Error(candidate + " delivered wrong data in exchange " + std::to_string(checked_));
  }
  // Only reads; for candidates that move nothing or round.
  void read() noexcept {
    ++checked_;
    std::uint64_t sum = 0;
    for_each(in_, [&](const std::byte* place, std::uint64_t) {
      std::uint64_t value;
      std::memcpy(&value, place, sizeof value);
      sum += value;
    });
    sink_ = sum;
  }

 private:
  // Marks at equal distances, numbered from `number` on; the numbers are the same on both ranks. A list of all places
  // would take a part of the caches.
  struct Row {
    std::byte* first;
    std::int64_t step;
    std::uint64_t number;
    std::uint64_t count;
  };

  template <class Visit>
  static void for_each(const std::vector<Row>& rows, const Visit& visit) {
    constexpr std::int64_t ahead = 16;
    for (const Row& row : rows) {
      std::byte* place = row.first;
      for (std::uint64_t i = 0; i < row.count; ++i, place += row.step) {
        __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(place) +
                                                         static_cast<std::uintptr_t>(ahead * row.step)));
        visit(place, row.number + i);
      }
    }
  }

  // The bits of an ordinary float64, as codecs expect.
  static std::uint64_t number_from_1_to_2(std::uint64_t number) noexcept {
    return std::uint64_t{0x3ff} << 52 | (number & 0xffffffffU) << 20;
  }

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  // Element numbers of a slice in its order: the first of every run, and then one in every 64 bytes.
  static std::vector<std::int64_t> one_a_line(const Slice& slice, std::int64_t element_bytes) {
    const std::int64_t step = std::max<std::int64_t>(1, 64 / element_bytes);
    std::vector<std::int64_t> chosen;
    std::int64_t position = 0;
    slice.for_each_run([&](std::int64_t, std::int64_t count) {
      for (std::int64_t i = 0; i < count; i += step) chosen.push_back(position + i);
      position += count;
    });
    return chosen;
  }

  static void add(std::vector<Row>& rows, const Schedule& schedule, const Place& place,
                  const std::vector<std::int64_t>& chosen, std::span<const std::span<std::byte>> arrays) {
    std::vector<std::int64_t> elements;
    place.slice.for_each_run([&](std::int64_t offset, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) elements.push_back(offset + i);
    });
    const std::int64_t element_bytes = schedule.arrays[at(place.array)].element_bytes;
    if (element_bytes < 8)
      throw BadInput("benchmarks of schedules need elements of at least 8 bytes, found " +
                     std::to_string(element_bytes));
    std::uint64_t number = 0;
    for (const std::int64_t i : chosen) {
      std::byte* const mark = arrays[at(place.array)].data() + elements[static_cast<std::size_t>(i)] * element_bytes;
      append(rows, mark, number++);
    }
  }

  static void append(std::vector<Row>& rows, std::byte* mark, std::uint64_t number) {
    constexpr std::uint64_t longest = 128;  // so that rows of two faces take turns while their lines are in the cache
    if (number > 0 && rows.back().count < longest) {
      Row& row = rows.back();
      const std::int64_t step = mark - (row.first + static_cast<std::int64_t>(row.count - 1) * row.step);
      if (row.count == 1) row.step = step;
      if (step == row.step) {
        ++row.count;
        return;
      }
    }
    rows.push_back({mark, 0, number, 1});
  }

  std::vector<Row> out_;
  std::vector<Row> in_;
  std::uint64_t written_ = 0;
  std::uint64_t checked_ = 0;
  volatile std::uint64_t sink_ = 0;
};

// The same exchange of arrays of the same lengths that the ranks share.
struct SharedExchange {
  std::vector<SharedArray> owners;
  std::vector<std::span<std::byte>> arrays;
  Marks marks;
  Plan plan;

  SharedExchange(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> originals)
      : arrays(allocate(group, originals, owners)),
        marks(schedule, group.rank(), arrays),
        plan(group, schedule, arrays) {}

  static std::vector<std::span<std::byte>> allocate(const Group& group, std::span<const std::span<std::byte>> originals,
                                                    std::vector<SharedArray>& owners) {
    std::vector<std::span<std::byte>> arrays;
    for (const auto& original : originals) {
      owners.push_back(group.allocate(static_cast<std::int64_t>(original.size())));
      arrays.push_back(owners.back().bytes().first(original.size()));
    }
    return arrays;
  }
};

}  // namespace

std::vector<Samples> halo_exchange(const Group& group, const Schedule& schedule,
                                   std::span<const std::span<std::byte>> arrays, const HaloOptions& options) {
  Arena arena(group);
  Marks marks(schedule, group.rank(), arrays);
  Compute compute(options.compute_us);
  std::vector<Candidate> candidates;
  const auto add_with = [&](Marks& own, std::string name, Role role, std::function<void()> run, bool exact) {
    candidates.push_back({name, role, [&own, &compute, name, run = std::move(run), exact](int repetitions) {
                            for (int i = 0; i < repetitions; ++i) {
                              own.dirty();
                              compute();
                              run();
                              exact ? own.check(name) : own.read();
                            }
                          }});
  };
  const auto add = [&](std::string name, Role role, std::function<void()> run, bool exact = true) {
    add_with(marks, std::move(name), role, std::move(run), exact);
  };
  Plan plan(group, schedule, arrays);
  add("onehop", Role::ours, [&plan] { plan.run(); });
  std::unique_ptr<SharedExchange> shared;
  if (options.shared_arrays) {
    shared = std::make_unique<SharedExchange>(group, schedule, arrays);
    add_with(shared->marks, "onehop, shared arrays", Role::variant, [&shared] { shared->plan.run(); }, true);
  }
  // The same with a clock that runs only while data is exchanged.
  const auto add_alone = [&](const std::string& name, const std::function<void(int)>& block, Marks& own, Plan& run) {
    candidates.push_back({name + ", the exchange alone", Role::variant, block});
    candidates.back().timed = [&own, &run, name](int repetitions) {
      double seconds = 0;
      for (int i = 0; i < repetitions; ++i) {
        own.dirty();
        const double begin = base::steady_seconds();
        run.run();
        seconds += base::steady_seconds() - begin;
        own.check(name);
      }
      return seconds * 1e6;
    };
  };
  if (options.alone) {
    add_alone("onehop", candidates[0].block, marks, plan);
    if (shared) add_alone("onehop, shared arrays", candidates[1].block, shared->marks, shared->plan);
  }
  std::unique_ptr<Plan> mock;
  PackingLines lines(schedule, group.rank(), arrays);
  if (options.mock) {
    mock = std::make_unique<Plan>(group, schedule, arrays, PlanOptions{.transport = TransportKind::mock});
    add("onehop, packing only", Role::variant, [&mock] { mock->run(); }, false);
    add("the limit of packing", Role::variant, [&lines] { lines.touch(); }, false);
  }
  if (options.compute_us > 0) add("speed of light: computing alone", Role::speed_of_light, [] {}, false);
  std::unique_ptr<BareExchange> bare;
  if (options.mock && arena.one_host() && group.size() == 2) {
    bare = std::make_unique<BareExchange>(group, schedule, arrays);
    std::vector<Candidate> variants;
    for (const BareCopy& copy : bare_copies()) {
      variants.push_back({copy.name, Role::speed_of_light, [&bare, &marks, copy](int repetitions) {
                            bare->use(copy.copy);
                            for (int i = 0; i < repetitions; ++i) {
                              marks.dirty();
                              bare->run();
                              bare->moves_everything() ? marks.check(copy.name) : marks.read();
                            }
                          }});
    }
    candidates.push_back(fastest_variant(arena, std::move(variants), options.effort));
  }
  for (const OtherCandidate& other : options.others) add(other.name, other.role, other.run, other.exact);
  std::vector<std::unique_ptr<HaloPeer>> peers;
  if (options.peers) peers = mpi_halo_peers(group);
  for (const auto& peer : peers) {
    peer->prepare(schedule, arrays);
    add(std::string(peer->name()), Role::peer, [&peer] { peer->run(); });
  }
  return run_rounds(arena, candidates, options.effort);
}

}  // namespace onehop::bench
