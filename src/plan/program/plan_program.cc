#include "src/plan/program/plan_program.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "onehop/error.h"
#include "onehop/verify.h"
#include "src/base/env.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"
#include "src/plan/direct/direct_exchange.h"
#include "src/plan/direct/direct_put.h"
#include "src/plan/program/combine_order.h"
#include "src/plan/program/memory_overlap.h"
#include "src/plan/program/message_builder.h"
#include "src/plan/program/plan_dependencies.h"
#include "src/plan/program/plan_part.h"
#include "src/plan/program/plan_rails.h"
#include "src/plan/program/plan_trace.h"
#include "src/plan/program/step_builder.h"
#include "src/plan/program/wire_turns.h"
#include "src/schedule/bit_permutation.h"

namespace onehop::detail {
namespace {

// Channels that carry "ready" and "done" of direct exchanges. Messages have tag 0.
constexpr int signal_tag = 1;

class Builder {
 public:
  // Throws for all errors that can be found without the other ranks.
  Builder(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
          const PlanOptions& options)
      : schedule_(schedule), arrays_(arrays), rank_(group.rank()) {
    check_arguments(group, schedule, arrays, options);
    if (options.verify || env::number("ONEHOP_VERIFY").value_or(0) != 0) verify_or_throw(schedule);
    parts_ = sort_transfers(schedule, rank_);
    check_memory_overlap(schedule, arrays, rank_);
    if (options.rails) check_rails(*options.rails, schedule, parts_, rank_);
    program_.watch = Guard::make(schedule, arrays, rank_);
  }

  // Collective.
  Program build(const Group& group, const PlanOptions& options) {
    const bool may_share =
        options.transport == TransportKind::automatic || options.transport == TransportKind::shared_memory;
    shared_.emplace(*group.state(), arrays_, may_share && program_.watch == nullptr, permutations_of(schedule_));
    steps_.emplace(program_, schedule_, arrays_, rank_, *shared_);
    messages_.emplace(program_, schedule_, *steps_);
    try {
      for (RoundPart& part : parts_) take_direct(part);
      request_channels(group, options);
    } catch (const std::exception& error) {
      refuse_channels(group, error.what());
      throw;
    }
    open(group, options);
    const std::exception_ptr failure = failure_of([&] {
      build_rounds(options.direct_puts);
      if (options.rails) assign_rails(program_, *options.rails, rank_);
      if (!program_.watch) program_.watch = make_plan_trace(program_, schedule_.name, *group.state());
    });
    agree(*group.state(), "making a plan", failure);
    return std::move(program_);
  }

 private:
  void build_rounds(bool direct_puts) {
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      ProgramRound round;
      const RoundPart& part = parts_[r];
      CombineOrder order(schedule_, part, rank_);
      for (const auto& [peer, transfers] : part.to)
        round.out.push_back(messages_->outgoing(
            sender_of_.at(peer), transfers, turns_of(transfers, peer, schedule_, part), exchanged_with(peer, part)));
      for (const auto& [peer, transfers] : part.from) {
        const std::size_t exchanged = exchanged_with(peer, part);
        round.in.push_back(messages_->incoming(receiver_of_.at(peer), transfers,
                                               turns_of(transfers, peer, schedule_, part), exchanged));
        if (order.keeps_message(peer)) messages_->keep_in_order(round, transfers, exchanged, order);
      }
      messages_->copy_inside(round, part, order);
      round.ordered = order.parts();
      set_dependencies(program_, round, part, messages_->ends());
      round.lockstep = side_by_side(part) && alike_all(round);
      round.moved = part.moved;
      if (part.steps) add_inside(round, *part.steps);
      program_.rounds.push_back(std::move(round));
    }
    add_direct();
    if (direct_puts) add_puts(program_, *steps_, parts_, *shared_, rank_);
    program_.kept = shared_->take_memory();
    program_.scratch.resize(static_cast<std::size_t>(messages_->longest_chunk()));
    program_.numbers.resize(static_cast<std::size_t>(messages_->longest_numbers()));
  }

  // Whether messages of the round have elements in the same cache lines.
  [[nodiscard]] bool side_by_side(const RoundPart& part) const {
    return part.steps && part.to.size() >= 2 && shares_lines(part.steps->exchange, element_bytes(*part.steps));
  }
  [[nodiscard]] std::int64_t element_bytes(const PermutationSteps& steps) const {
    return schedule_.arrays[static_cast<std::size_t>(steps.exchange.array)].element_bytes;
  }

  // Whether all messages of the round, in both directions, are cut in the same way.
  [[nodiscard]] bool alike_all(const ProgramRound& round) const {
    const auto chunks = [&](const ProgramMessage& message, std::uint32_t f) {
      const auto& fragment = program_.fragments[message.first + f];
      return std::span(program_.chunks).subspan(fragment.first, fragment.last - fragment.first);
    };
    const ProgramMessage& first = round.out.front();
    const auto alike = [&](const ProgramMessage& message) {
      if (message.last - message.first != first.last - first.first) return false;
      for (std::uint32_t f = 0; f < first.last - first.first; ++f) {
        if (!std::ranges::equal(chunks(message, f), chunks(first, f), {}, &ProgramChunk::end, &ProgramChunk::end))
          return false;
      }
      return true;
    };
    return std::ranges::all_of(round.out, alike) && std::ranges::all_of(round.in, alike);
  }

  // Replaces the messages of those cycles of a permutation that can be executed in shared memory.
  void take_direct(RoundPart& part) {
    if (!part.steps || part.exchange.empty() || part.exchange.front().codec != Codec::raw) return;
    const BitPermutation& exchange = part.steps->exchange;
    for (Cycle& cycle : cycles_of(exchange, rank_)) {
      std::vector<int> ranks;
      for (const CyclePlace& place : cycle) ranks.push_back(place.rank);
      if (!shared_->holds(ranks, exchange.array)) continue;
      const auto own = std::ranges::find(cycle, rank_, &CyclePlace::rank) - cycle.begin();
      const auto length = static_cast<std::ptrdiff_t>(cycle.size());
      const auto rank_at = [&](std::ptrdiff_t place) { return cycle[static_cast<std::size_t>(place % length)].rank; };
      const auto next = part.to.find(rank_at(own + 1));
      const auto last = part.from.find(rank_at(own + length - 1));
      ++part.moved.messages_sent;
      ++part.moved.messages_received;
      for (const Transfer* transfer : next->second) part.moved.bytes_sent += schedule_.bytes(*transfer);
      for (const Transfer* transfer : last->second) part.moved.bytes_received += schedule_.bytes(*transfer);
      part.to.erase(next);
      part.from.erase(last);
      std::ranges::sort(ranks);
      part.direct.push_back({std::move(ranks), {std::move(cycle)}});
    }
    CycleGroup connected = connected_cycles(exchange, rank_, element_bytes(*part.steps));
    if (!connected.cycles.empty() && shared_->holds(connected.ranks, exchange.array)) {
      part.direct.clear();
      part.direct.push_back(std::move(connected));
    }
    for (const CycleGroup& group : part.direct) {
      for (const int other : group.ranks) {
        if (other != rank_) signals_of_.emplace(other, static_cast<std::uint32_t>(signals_of_.size()));
      }
    }
  }

  // Maps the other ranks' arrays and assigns the shares.
  void add_direct() {
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      for (const CycleGroup& group : parts_[r].direct) add_cycles(group, parts_[r].steps->exchange, program_.rounds[r]);
    }
  }

  void add_cycles(const CycleGroup& group, const BitPermutation& exchange, ProgramRound& round) {
    const std::int64_t element_bytes = schedule_.arrays[static_cast<std::size_t>(exchange.array)].element_bytes;
    std::uint64_t moving = 0;
    for (int bit = 0; bit < exchange.local_bits; ++bit) {
      if (exchange.to[static_cast<std::size_t>(bit)] != bit) moving |= std::uint64_t{1} << bit;
    }
    std::vector<std::vector<std::byte*>> cycles;
    for (const Cycle& cycle : group.cycles) {
      std::vector<std::byte*>& places = cycles.emplace_back();
      for (const CyclePlace& place : cycle) {
        places.push_back(steps_->memory({place.rank, exchange.array, {}}) +
                         place.first * static_cast<std::uint64_t>(element_bytes));
      }
    }
    std::vector<std::uint32_t> signals;
    for (const int other : group.ranks) {
      if (other != rank_) signals.push_back(signals_of_.at(other));
    }
    const auto number = static_cast<std::size_t>(std::ranges::find(group.ranks, rank_) - group.ranks.begin());
    round.direct.add(std::move(cycles), Runs(exchange.local_bits, moving, element_bytes), number, group.ranks.size(),
                     signals);
  }

  void add_inside(ProgramRound& round, const PermutationSteps& steps) const {
    const BitPermutation& exchange = steps.exchange;
    for (const auto& [a, b] : steps.inside) {
      round.inside.push_back(
          {arrays_[static_cast<std::size_t>(exchange.array)].data(), exchange.local_bits, a, b, element_bytes(steps)});
    }
  }

  void request_channels(const Group& group, const PlanOptions& options) {
    std::map<int, Lane> to;
    std::map<int, Lane> from;
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      for (const auto& [peer, transfers] : parts_[r].to) {
        add_message(to[peer], schedule_, r, transfers);
        to[peer].permutes |= parts_[r].steps.has_value();
        to[peer].side_by_side |= side_by_side(parts_[r]);
      }
      for (const auto& [peer, transfers] : parts_[r].from) {
        add_message(from[peer], schedule_, r, transfers);
        from[peer].permutes |= parts_[r].steps.has_value();
        from[peer].side_by_side |= side_by_side(parts_[r]);
      }
    }
    const auto far = [&](int peer) {
      return options.transport == TransportKind::mpi || options.transport == TransportKind::ucx ||
             !group.state()->shares_memory(peer);
    };
    for (const auto& [peer, lane] : to) {
      sender_of_[peer] = static_cast<std::uint32_t>(sender_of_.size());
      specs_.push_back(spec_for(ChannelSpec::Direction::send, peer, lane, options, far(peer)));
    }
    for (const auto& [peer, lane] : from) {
      receiver_of_[peer] = static_cast<std::uint32_t>(receiver_of_.size());
      specs_.push_back(spec_for(ChannelSpec::Direction::receive, peer, lane, options, far(peer)));
    }
    std::vector<int> partners(signals_of_.size());
    for (const auto& [peer, index] : signals_of_) partners[index] = peer;
    for (const int peer : partners) {
      for (const auto direction : {ChannelSpec::Direction::send, ChannelSpec::Direction::receive}) {
        ChannelSpec& signal = specs_.emplace_back();
        signal.direction = direction;
        signal.peer = peer;
        signal.tag = signal_tag;
        signal.slots = 2;
      }
    }
  }

  void open(const Group& group, const PlanOptions& options) {
    Channels channels = open_channels(group, specs_, options.transport);
    program_.senders = std::move(channels.senders);
    program_.receivers = std::move(channels.receivers);
    // The channels of the signals come last.
    const std::size_t senders = sender_of_.size();
    const std::size_t receivers = receiver_of_.size();
    for (std::size_t i = 0; i < signals_of_.size(); ++i) {
      program_.signals.push_back(
          {std::move(program_.senders[senders + i]), std::move(program_.receivers[receivers + i])});
    }
    program_.senders.resize(senders);
    program_.receivers.resize(receivers);
    program_.puts_done.resize(program_.senders.size());
    for (const Sender& sender : program_.senders) {
      program_.stores.push_back(stores_for_pieces(sender.stores()));
      program_.polls |= sender.needs_progress();
    }
    for (const Receiver& receiver : program_.receivers) {
      program_.staging_bytes += static_cast<std::int64_t>(receiver.ring().stride) * receiver.ring().slots;
      program_.polls |= receiver.needs_progress();
    }
  }

  const Schedule& schedule_;
  std::span<const std::span<std::byte>> arrays_;
  int rank_;
  std::vector<RoundPart> parts_;
  std::vector<ChannelSpec> specs_;
  std::map<int, std::uint32_t> signals_of_;  // index in the program's signals, by the other rank
  std::optional<SharedArrays> shared_;
  std::optional<StepBuilder> steps_;
  std::optional<MessageBuilder> messages_;
  Program program_;
  std::map<int, std::uint32_t> sender_of_;
  std::map<int, std::uint32_t> receiver_of_;
};

}  // namespace

Program make_program(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
                     const PlanOptions& options) {
  std::optional<Builder> builder;
  try {
    builder.emplace(group, schedule, arrays, options);
  } catch (const std::exception& error) {
    refuse_channels(group, error.what());
    throw;
  }
  return builder->build(group, options);
}

}  // namespace onehop::detail
