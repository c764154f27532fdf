#include "measure/tune.h"

#include <memory>
#include <string_view>
#include <utility>

#include "measure/buffer.h"
#include "measure/compute.h"
#include "measure/pingpong.h"
#include "onehop/channel.h"

namespace onehop::measure {
namespace {

// Restores the previous tuning at the end of its scope.
class TuningGuard {
 public:
  TuningGuard() : before_(tuning()) {}
  TuningGuard(const TuningGuard&) = delete;
  TuningGuard& operator=(const TuningGuard&) = delete;
  ~TuningGuard() { set_tuning(std::move(before_)); }

 private:
  Tuning before_;
};

struct Ends {
  Sender sender;
  Receiver receiver;
};

Ends open_ends(const Group& group, std::int64_t bytes, std::int64_t slot_bytes, int slots, int to, int from) {
  const ChannelSpec specs[] = {
      {.direction = ChannelSpec::Direction::send, .peer = to, .bytes = bytes, .slots = slots, .slot_bytes = slot_bytes},
      {.direction = ChannelSpec::Direction::receive,
       .peer = from,
       .bytes = bytes,
       .slots = slots,
       .slot_bytes = slot_bytes},
  };
  Channels channels = open_channels(group, specs, TransportKind::shared_memory);
  return {std::move(channels.senders[0]), std::move(channels.receivers[0])};
}

// The ends of one message in each direction.
class Path {
 public:
  Path(const Group& group, std::int64_t bytes, std::int64_t slot_bytes, int slots)
      : source_(bytes), ends_(open_ends(group, bytes, slot_bytes, slots, 1 - group.rank(), 1 - group.rank())) {}

  [[nodiscard]] static std::string_view name() { return "a channel"; }
  [[nodiscard]] std::span<std::byte> source(int = 0) const { return source_.bytes(); }
  void send() { ends_.sender.put(source_.bytes()); }
  template <class Read>
  void receive(Read&& read) {
    ends_.receiver.read([&](std::span<const std::byte> part, std::int64_t) { read(part); });
  }

 private:
  Buffer source_;
  Ends ends_;
};

}  // namespace

std::string name_of(const StoreChoice& choice) {
  return std::string(to_string(choice.stores)) + " " + std::to_string(choice.chunk_bytes) + " " +
         std::to_string(choice.slot_bytes) + " " + std::to_string(choice.slots);
}

std::string name_of(const WaitChoice& choice) {
  return std::to_string(choice.spins) + " " + std::to_string(choice.spins_oversubscribed) + " " +
         std::to_string(choice.yields);
}

std::vector<Samples> try_stores(const Group& group, std::int64_t bytes, bool both_ways,
                                const std::vector<StoreChoice>& choices, const Effort& effort) {
  const TuningGuard guard;
  Arena arena(group);
  std::vector<Candidate> candidates;
  for (const StoreChoice& choice : choices) {
    Tuning changed = tuning();
    changed.rules = {{bytes, choice.chunk_bytes, choice.stores}};
    changed.adaptive_stores = false;
    if (choice.slot_bytes != 0) changed.slot_bytes = choice.slot_bytes;
    set_tuning(changed);
    // With both directions at once, both ranks write before they read, so the slot must hold the whole message.
    const auto path = std::make_shared<Path>(group, bytes, both_ways ? bytes : choice.slot_bytes, choice.slots);
    candidates.push_back({name_of(choice), Role::ours,
                          both_ways ? measure::both_ways(path, bytes, 1) : block_of(path, group.rank() == 0, bytes),
                          both_ways ? 1 : one_way});
  }
  return run_rounds(arena, candidates, effort);
}

std::vector<Samples> try_waits(const Group& group, double compute_us, const std::vector<WaitChoice>& choices,
                               const Effort& effort) {
  const TuningGuard guard;
  Arena arena(group);
  constexpr std::int64_t bytes = 64;
  const int next = (group.rank() + 1) % group.size();
  const int before = (group.rank() + group.size() - 1) % group.size();
  Ends ends = open_ends(group, bytes, 0, 0, next, before);
  Compute compute(group.rank() % 2 == 0 ? compute_us : compute_us / 2);
  Buffer source(bytes);
  std::vector<Candidate> candidates;
  for (const WaitChoice& choice : choices) {
    candidates.push_back({name_of(choice), Role::ours, [&, choice](int repetitions) {
                            Tuning changed = tuning();
                            changed.spins = choice.spins;
                            changed.spins_oversubscribed = choice.spins_oversubscribed;
                            changed.yields = choice.yields;
                            set_tuning(changed);
                            for (int i = 0; i < repetitions; ++i) {
                              compute();
                              ends.sender.put(source.bytes());
                              static_cast<void>(ends.receiver.wait());
                              ends.receiver.release();
                            }
                          }});
  }
  return run_rounds(arena, candidates, effort);
}

}  // namespace onehop::measure
