// Trials of long messages: plans, chains of channels, and reductions, whose senders choose their stores while they run.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "onehop/channel.h"
#include "onehop/collectives/collectives.h"
#include "onehop/tuning.h"
#include "tests/soak/native/processes.h"
#include "tests/soak/native/schedules.h"
#include "tests/soak/native/traced.h"
#include "tests/soak/native/trials.h"

namespace onehop::soak {
namespace {

[[noreturn]] void wrong(const Group& group, std::uint64_t number, const std::string& where) {
  throw std::logic_error("wrong bytes: " + where + " " + std::to_string(number) + ", rank " +
                         std::to_string(group.rank()));
}

// So many repetitions move about the same number of bytes in every batch.
std::int64_t repetitions(std::int64_t bytes) {
  return std::clamp<std::int64_t>(1'500'000'000 / (2000 + bytes), 200, 20'000);
}

void run_plan_batch(const Group& group, Report& report, std::uint64_t seed, bool plant) {
  Source draws(seed);
  const Schedule schedule = long_schedule(draws, group.size());
  Traced plan(group, schedule, seed, draws, Lengths::long_);
  Source ways(mix(seed, static_cast<std::uint64_t>(1 + group.rank())));
  const auto step = [&](std::uint64_t number) {
    plan.renew(number);
    pause_seldom(ways);
    plan.run(static_cast<std::uint64_t>(ways.below(15)));
    plan.check(number);
  };
  repeat(report, repetitions(plan.bytes()), 1, step, [&] { plant ? plan.spoil() : void(); });
  if (plan.adaptive()) report.adaptive += repetitions(plan.bytes());
  ++report.schedules;
}

// A message of random bytes, which are others in every step, and the 16 bytes behind it.
class Message {
 public:
  Message(std::uint64_t seed, std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)), base_(bytes_ / 8 + 3), expected_(base_) {
    for (std::size_t i = 0; i < base_.size(); ++i) base_[i] = mix(seed, i);
  }

  // The message of a step, and what is behind it.
  void expect_step(std::uint64_t number) {
    const std::uint64_t word = mix(number, 7);
    for (std::size_t i = 0; i < base_.size(); ++i) expected_[i] = base_[i] ^ word;
  }
  [[nodiscard]] std::span<const std::byte> expected() const {
    return std::as_bytes(std::span(expected_)).first(bytes_);
  }
  // Whether a part that begins at `offset` is as expected.
  [[nodiscard]] bool has(std::span<const std::byte> part, std::int64_t offset) const {
    return std::memcmp(part.data(), expected().data() + offset, part.size()) == 0;
  }
  void spoil() { base_[bytes_ / 16] ^= 1; }

 private:
  std::size_t bytes_;
  std::vector<std::uint64_t> base_, expected_;
};

// A chain of channels, from rank 0 to the last one: all messages are on their way as soon as there are free slots.
class Chain {
 public:
  Chain(const Group& group, std::uint64_t seed, const ChannelSpec& spec)
      : group_(group),
        ways_(mix(seed, static_cast<std::uint64_t>(1 + group.rank()))),
        message_(seed, spec.bytes),
        memory_(static_cast<std::size_t>(spec.bytes + behind)) {
    std::vector<ChannelSpec> specs;
    for (const int other : {group.rank() - 1, group.rank() + 1}) {
      if (other < 0 || other == group.size()) continue;
      specs.push_back(spec);
      specs.back().peer = other;
      specs.back().direction = other > group.rank() ? ChannelSpec::Direction::send : ChannelSpec::Direction::receive;
    }
    ends_ = open_channels(group, specs);
  }

  void step(std::uint64_t number) {
    message_.expect_step(number);
    pause_seldom(ways_);
    if (!ends_.receivers.empty()) receive(number);
    if (!ends_.senders.empty()) send();
  }
  [[nodiscard]] bool adaptive() const { return !ends_.senders.empty() && ends_.senders[0].adaptive(); }
  void spoil() { ends_.receivers.empty() ? void() : message_.spoil(); }

 private:
  void receive(std::uint64_t number) {
    Receiver& end = ends_.receivers[0];
    const std::int64_t way = ways_.below(end.in_place() ? 3 : 2);
    bool right = true;
    if (way == 0) {
      std::fill(memory_.begin(), memory_.end(), std::byte{0x5a});
      const auto place = std::span(memory_).first(static_cast<std::size_t>(end.bytes()));
      end.get(place);
      right = message_.has(place, 0) &&
              std::all_of(memory_.end() - behind, memory_.end(), [](std::byte one) { return one == std::byte{0x5a}; });
    } else if (way == 1) {
      std::int64_t next = 0;
      end.read([&](std::span<const std::byte> part, std::int64_t offset) {
        right = right && offset == next && message_.has(part, offset);
        next = offset + static_cast<std::int64_t>(part.size());
      });
      right = right && next == end.bytes();
    } else {
      right = message_.has(end.wait(), 0);
      end.release();
    }
    if (!right) wrong(group_, number, "received in way " + std::to_string(way) + ", message");
  }

  void send() {
    Sender& end = ends_.senders[0];
    const std::span<const std::byte> from = message_.expected();
    const std::int64_t way = ways_.below(end.in_place() ? 3 : 2);
    if (way == 0) return end.put(from);
    if (way == 1) {
      return end.write([&](std::span<std::byte> part, std::int64_t offset) {
        std::memcpy(part.data(), from.data() + offset, part.size());
      });
    }
    const std::span<std::byte> slot = end.slot();
    std::memcpy(slot.data(), from.data(), from.size());
    end.put();
  }

  static constexpr std::ptrdiff_t behind = 16;

  Group group_;
  Source ways_;
  Message message_;
  std::vector<std::byte> memory_;
  Channels ends_;
};

void run_channel_batch(const Group& group, Report& report, std::uint64_t seed, bool plant) {
  Source draws(seed);
  ChannelSpec spec;
  spec.bytes = longest_short_message + 1 +
               draws.below(draws.one_of<std::int64_t>({4096, 60'000, longest_message - longest_short_message}));
  spec.slots = static_cast<int>(draws.one_of<std::int64_t>({0, 1, 2, 3, 8}));
  spec.slot_bytes = draws.one_of<std::int64_t>({0, 0, 8192, 20'000, 1 << 16, 1 << 18});
  spec.chunk_bytes = draws.one_of<std::int64_t>({0, 0, 1024, 6000});
  Chain chain(group, seed, spec);
  repeat(
      report, repetitions(2 * spec.bytes), 1, [&](std::uint64_t number) { chain.step(number); },
      [&] { plant ? chain.spoil() : void(); });
  if (chain.adaptive()) report.adaptive += repetitions(2 * spec.bytes);
}

// All-reduce and reduce-scatter of integers, whose sums are exact in both types. Element i of rank r in step s is
// base + i % 1021 + s (r + 1).
template <class T>
void run_reductions(const Group& group, Report& report, std::uint64_t seed, ElementType type, bool plant) {
  Source draws(seed);
  const auto ranks = static_cast<std::int64_t>(group.size());
  collectives::Reduction what;
  what.type = type;
  what.algorithm = draws.one_of({ReduceAlgorithm::automatic, ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot});
  const bool scatters = draws.below(3) == 0;
  const auto least = longest_short_message / static_cast<std::int64_t>(sizeof(T)) + 1;
  what.elements = least + draws.below(draws.one_of<std::int64_t>({least, 8 * least, 32 * least}));
  const std::int64_t base = draws.below(1000);
  // Short slots, so that an operation uses each of them several times.
  collectives::CollectivesOptions options;
  options.slots = static_cast<int>(draws.one_of<std::int64_t>({0, 2, 3}));
  options.slot_bytes = draws.one_of<std::int64_t>({0, 4096, 8192});
  collectives::Collectives all(group, options);
  collectives::Collective reduce = scatters ? all.reduce_scatter(what) : all.allreduce(what);
  std::vector<T> source(static_cast<std::size_t>(reduce.source_bytes()) / sizeof(T));
  std::vector<T> result(static_cast<std::size_t>(reduce.result_bytes()) / sizeof(T));
  const std::int64_t first = scatters ? group.rank() * what.elements : 0;
  bool spoiled = false;
  const auto step = [&](std::uint64_t number) {
    const auto shift = static_cast<std::int64_t>(number);
    for (std::size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<T>(base + static_cast<std::int64_t>(i % 1021) + shift * (group.rank() + 1));
    }
    reduce.run(std::as_bytes(std::span(source)), std::as_writable_bytes(std::span(result)));
    if (std::exchange(spoiled, false)) result[result.size() / 2] += 1;
    std::int64_t failures = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::int64_t element = (first + static_cast<std::int64_t>(i)) % 1021;
      failures += result[i] != static_cast<T>(ranks * (base + element) + shift * ranks * (ranks + 1) / 2) ? 1 : 0;
    }
    if (failures != 0) wrong(group, number, std::to_string(failures) + " sums of reduction");
  };
  repeat(report, repetitions(static_cast<std::int64_t>(3 * sizeof(T) * source.size())), 1, step,
         [&] { spoiled = plant; });
}

void run_batch(const Group& group, Report& report, std::uint64_t seed, bool plant) {
  Source draws(seed);
  // Where the senders begin; the tuning of the machine may name another kind, which does not adapt.
  Tuning tuned = tuning();
  tuned.adaptive_stores = true;
  const StoreKind begin = draws.one_of({StoreKind::plain, StoreKind::nontemporal});
  for (SizeRule& rule : tuned.rules) rule.stores = begin;
  set_tuning(tuned);
  const std::int64_t kind = draws.below(8);
  if (kind < 4) return run_plan_batch(group, report, mix(seed, 1), plant);
  if (kind < 6) return run_channel_batch(group, report, mix(seed, 2), plant);
  if (kind == 6) return run_reductions<std::int64_t>(group, report, mix(seed, 3), ElementType::int64, plant);
  run_reductions<double>(group, report, mix(seed, 3), ElementType::float64, plant);
}

}  // namespace

Counts long_messages(std::uint64_t seed, int batches, bool plant) {
  Source source(seed);
  const int size = source.one_of({2, 2, 2, 2, 3, 4});
  const bool one_core = source.below(6) == 0;
  return run_batches({size, one_core, batches, [&](const Group& group, Report& report, int number) {
                        run_batch(group, report, mix(seed, static_cast<std::uint64_t>(number)), plant);
                      }});
}

}  // namespace onehop::soak
