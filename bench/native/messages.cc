// `onehop bench pingpong`, `channel` and `qspi`: messages between two ranks.
#include <memory>
#include <utility>

#include "bench/native/bench.h"
#include "bench/native/message_ends.h"
#include "measure/pingpong.h"
#include "measure/touch.h"
#include "src/base/text.h"

namespace onehop::bench {
namespace {

// The fastest variant of the speed of light, whose ends block_of(end) repeats.
template <class BlockOf>
Candidate speed_of_light_of(Arena& arena, const std::shared_ptr<SpeedOfLightEnd>& end,
                            const std::vector<SpeedOfLightVariant>& ways, const Effort& effort,
                            const BlockOf& block_of_end) {
  const std::function<void(int)> block = block_of_end(end);
  std::vector<Candidate> variants;
  for (const SpeedOfLightVariant& way : ways) {
    variants.push_back({way.name, Role::speed_of_light, [end, way, block](int repetitions) {
                          end->use(way);
                          block(repetitions);
                        }});
  }
  return fastest_variant(arena, std::move(variants), effort);
}

struct MessageOptions {
  Effort effort;
  bool peers = true;  // compare with MPI if there is one
  bool qspi = false;  // whether "ours" is the drop-in interface qspi; plain channels are then variants
};

// One message between two ranks, one way; bytes = 0 is a bare signal. `get`: also by Receiver::get into an array.
std::vector<Samples> ping_pong(const Group& group, std::int64_t bytes, bool get, const MessageOptions& options) {
  Arena arena(group);
  const bool first = group.rank() == 0;
  std::vector<Candidate> candidates;
  const auto block = [&](auto end) { return block_of(std::move(end), first, bytes); };
  const auto add = [&](auto end, Role role) {
    candidates.push_back({std::string(end->name()), role, block(end), one_way});
  };
  // The rank that begins expects an answer; the other one expects nothing after its last message.
  if (options.qspi) add(std::make_shared<QspiEnd>(1 - group.rank(), bytes, 1, first), Role::ours);
  candidates.push_back(onehop_ping_pong(group, bytes, false, options.qspi ? Role::variant : Role::ours));
  if (get) candidates.push_back(onehop_ping_pong(group, bytes, true, Role::variant));
  if (arena.one_host()) {
    const auto end = std::make_shared<SpeedOfLightEnd>(group, bytes, bytes);
    candidates.push_back(speed_of_light_of(arena, end, speed_of_light_variants(bytes, true), options.effort, block));
    candidates.back().scale = one_way;
  }
  if (options.peers) {
    for (auto& peer : mpi_message_peers(group, bytes, 1, false))
      add(std::make_shared<MpiEnd>(std::move(peer), 1), Role::peer);
  }
  return run_rounds(arena, candidates, options.effort);
}

// Several messages in both directions at once; `bytes`, a multiple of 8, is the size of one. "onehop" reads them in the
// slot, in which they lie contiguous, and "onehop, plan" in arrays of their own.
std::vector<Samples> exchange(const Group& group, std::int64_t bytes, int messages, const MessageOptions& options) {
  if (bytes < 8 || bytes % 8 != 0 || messages < 1) {
    throw BadInput("expected messages of a multiple of 8 bytes, and at least one of them, found " +
                   std::to_string(messages) + " of " + base::counted(bytes, "byte"));
  }
  Arena arena(group);
  std::vector<Candidate> candidates;
  const auto block = [&](auto end) { return both_ways(std::move(end), bytes, messages); };
  const auto add = [&](auto end, Role role) { candidates.push_back({std::string(end->name()), role, block(end)}); };
  if (options.qspi) add(std::make_shared<QspiEnd>(1 - group.rank(), bytes, messages, true), Role::ours);
  add(std::make_shared<InPlaceEnd>(group, bytes, messages), options.qspi ? Role::variant : Role::ours);
  add(ArraysEnd::by_plan(group, bytes, messages), Role::variant);
  if (arena.one_host()) {
    const std::int64_t whole = rounded(bytes) * messages;
    const auto end = std::make_shared<SpeedOfLightEnd>(group, bytes, whole);
    candidates.push_back(speed_of_light_of(arena, end, speed_of_light_variants(whole, false), options.effort, block));
  }
  if (options.peers) {
    for (auto& peer : mpi_halo_peers(group, halo_prefix))
      add(ArraysEnd::by_mpi(std::move(peer), bytes, messages), Role::peer);
    for (auto& peer : mpi_message_peers(group, bytes, messages, true))
      add(std::make_shared<MpiEnd>(std::move(peer), messages), Role::peer);
  }
  return run_rounds(arena, candidates, options.effort);
}

}  // namespace

void bind_messages(nb::module_& module) {
  module.def(
      "ping_pong",
      [](const Group& group, std::int64_t bytes, const Effort& effort, bool get, bool peers, bool qspi) {
        return samples::measure([&] { return ping_pong(group, bytes, get, {effort, peers, qspi}); });
      },
      "group"_a, "bytes"_a, "effort"_a, "get"_a, "peers"_a, "qspi"_a = false,
      "Measure one message between two ranks, one way.");
  module.def(
      "exchange",
      [](const Group& group, std::int64_t bytes, int messages, const Effort& effort, bool peers, bool qspi) {
        return samples::measure([&] { return exchange(group, bytes, messages, {effort, peers, qspi}); });
      },
      "group"_a, "bytes"_a, "messages"_a, "effort"_a, "peers"_a, "qspi"_a = false,
      "Measure several messages in both directions at once.");
}

}  // namespace onehop::bench
