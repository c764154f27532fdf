// `onehop bench pingpong`, `channel` and `qspi`: messages between two ranks.
#include <algorithm>
#include <memory>
#include <utility>

#include "bench/native/benchmarks.h"
#include "bench/native/speed_of_light.h"
#include "compat/qspi.h"
#include "measure/buffer.h"
#include "measure/pingpong.h"
#include "measure/touch.h"
#include "onehop/plan.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/channel/store.h"

namespace onehop::bench {
namespace {

constexpr std::int64_t line = 64;
std::int64_t rounded(std::int64_t bytes) { return (bytes + line - 1) / line * line; }

// Several consecutive messages, each of which begins at a cache line.
class Messages {
 public:
  Messages(std::int64_t bytes, int count) : bytes_(bytes), count_(count), memory_(rounded(bytes) * count) {}
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] std::span<std::byte> operator[](int message) const noexcept {
    return memory_.bytes().subspan(static_cast<std::size_t>(rounded(bytes_) * message),
                                   static_cast<std::size_t>(bytes_));
  }

 private:
  std::int64_t bytes_;
  int count_;
  Buffer memory_;
};

// Sends messages in both directions at once `repetitions` times. An end has source(message), send(), and receive(read),
// which calls read(part) for every part of the received messages.
template <class End>
void both_ways(End& end, Touch& touch, std::int64_t bytes, int messages, int repetitions) {
  const std::uint64_t lines = Touch::lines(bytes);
  for (int i = 0; i < repetitions; ++i) {
    for (int m = 0; m < messages; ++m) touch.dirty(end.source(m), lines * static_cast<std::uint64_t>(m));
    touch.sent();
    end.send();
    end.receive([&](std::span<const std::byte> part) { touch.read(part); });
    touch.received(lines * static_cast<std::uint64_t>(messages), end.name());
  }
}

// All messages share one slot and one flag. They are packed directly into the slot and read there.
class InPlaceEnd {
 public:
  InPlaceEnd(const Group& group, std::int64_t bytes, int messages) : sources_(bytes, messages), bytes_(bytes) {
    const int peer = 1 - group.rank();
    const std::int64_t total = rounded(bytes) * messages;
    // Both ranks write before they read, so the slot must hold all messages.
    const ChannelSpec specs[] = {
        {.direction = ChannelSpec::Direction::send, .peer = peer, .bytes = total, .slot_bytes = total},
        {.direction = ChannelSpec::Direction::receive, .peer = peer, .bytes = total, .slot_bytes = total},
    };
    Channels channels = open_channels(group, specs, TransportKind::automatic);
    sender_ = std::move(channels.senders[0]);
    receiver_ = std::move(channels.receivers[0]);
    store_ = detail::piece_function(sender_.stores());
  }

  [[nodiscard]] std::string_view name() const { return "onehop"; }
  [[nodiscard]] std::span<std::byte> source(int message) const { return sources_[message]; }
  void send() {
    sender_.write([this](std::span<std::byte> part, std::int64_t offset) { pack(part, offset); });
  }
  template <class Read>
  void receive(Read&& read) {
    receiver_.read([&](std::span<const std::byte> part, std::int64_t) { read(part); });
  }

 private:
  void pack(std::span<std::byte> part, std::int64_t offset) {
    if (!sender_.adaptive()) return store(part, offset);
    if (part.data() == sender_.payload()) {
      sender_.begin_use(std::min(sender_.bytes() - offset, sender_.ring().slot_bytes));
      store_ = detail::piece_function(sender_.stores());
    }
    const double begin = sender_.times_use() ? base::steady_seconds() : 0;
    store(part, offset);
    if (sender_.times_use()) sender_.stored(base::steady_seconds() - begin);
  }

  void store(std::span<std::byte> part, std::int64_t offset) {
    const std::int64_t stride = rounded(bytes_);
    const std::int64_t end = offset + static_cast<std::int64_t>(part.size());
    for (std::int64_t at = offset; at < end;) {
      const std::int64_t message = at / stride;
      const std::int64_t inside = at - message * stride;
      const std::int64_t wanted = std::min(end, (message + 1) * stride) - at;
      const std::int64_t length = std::min(wanted, bytes_ - inside);
      if (length > 0) {
        store_(part.data() + (at - offset), sources_[static_cast<int>(message)].data() + inside,
               static_cast<std::size_t>(length));
      }
      at += wanted;
    }
    detail::finish_stores(sender_.stores());
  }

  Messages sources_;
  std::int64_t bytes_;
  Sender sender_;
  Receiver receiver_;
  detail::StoreFunction store_ = nullptr;
};

// From arrays to arrays, one for each message.
class PlanEnd {
 public:
  PlanEnd(const Group& group, std::int64_t bytes, int messages)
      : sources_(bytes, messages), results_(bytes, messages), plan_(make(group, bytes, messages)) {}

  [[nodiscard]] std::string_view name() const { return "onehop, plan"; }
  [[nodiscard]] std::span<std::byte> source(int message) const { return sources_[message]; }
  void send() { plan_.run(); }
  template <class Read>
  void receive(Read&& read) {
    for (int m = 0; m < results_.count(); ++m) read(std::span<const std::byte>(results_[m]));
  }

 private:
  [[nodiscard]] Plan make(const Group& group, std::int64_t bytes, int messages) {
    Schedule schedule;
    schedule.name = "several messages each way";
    schedule.ranks = 2;
    schedule.rounds.resize(1);
    std::vector<std::span<std::byte>> arrays;
    const std::int64_t elements = bytes / 8;
    const Slice all = Slice::range(0, elements);
    for (int m = 0; m < messages; ++m) {
      schedule.arrays.push_back({"out" + std::to_string(m), 8, ElementType::bytes, {elements}});
      schedule.arrays.push_back({"in" + std::to_string(m), 8, ElementType::bytes, {elements}});
      arrays.push_back(sources_[m]);
      arrays.push_back(results_[m]);
    }
    for (int from = 0; from < 2; ++from) {
      for (int m = 0; m < messages; ++m) {
        schedule.rounds[0].transfers.push_back({{from, 2 * m, all}, {1 - from, 2 * m + 1, all}});
      }
    }
    return Plan(group, schedule, arrays, {.transport = TransportKind::automatic});
  }

  Messages sources_;
  Messages results_;
  Plan plan_;
};

// Messages of qspi that are prepared once. A rank that `expects` starts to receive before it sends.
class QspiEnd {
 public:
  QspiEnd(int peer, std::int64_t bytes, int messages, bool expects)
      : sources_(bytes, messages), results_(bytes, messages), expects_(expects) {
    std::vector<qspi_msg_t> all;
    for (int m = 0; m < messages; ++m) {
      all.push_back(receives_.emplace_back(qspi_create_msg()).get());
      qspi_set_recv(peer, results_[m].data(), results_[m].size(), all.back());
    }
    for (int m = 0; m < messages; ++m) {
      all.push_back(sends_.emplace_back(qspi_create_msg()).get());
      qspi_set_send(peer, sources_[m].data(), sources_[m].size(), all.back());
    }
    qspi_prepare(all.data(), static_cast<int>(all.size()));
  }

  [[nodiscard]] std::string_view name() const { return "qspi"; }
  [[nodiscard]] std::span<std::byte> source(int message = 0) const { return sources_[message]; }
  void send() const {
    for (const Message& message : receives_) {
      if (expects_) qspi_start(message.get());
    }
    for (const Message& message : sends_) qspi_start(message.get());
    for (const Message& message : sends_) qspi_wait(message.get());
  }
  template <class Read>
  void receive(Read&& read) const {
    for (const Message& message : receives_) qspi_wait(message.get());
    for (int m = 0; m < results_.count(); ++m) read(std::span<const std::byte>(results_[m]));
  }

 private:
  struct Free {
    void operator()(qspi_msg_t message) const { qspi_free_msg(message); }
  };
  using Message = std::unique_ptr<qspi_message, Free>;

  Messages sources_;
  Messages results_;
  bool expects_;
  std::vector<Message> sends_;
  std::vector<Message> receives_;
};

class MpiEnd {
 public:
  MpiEnd(MessagePeer& peer, int messages) : peer_(peer), messages_(messages) {}
  [[nodiscard]] std::string_view name() const { return peer_.name(); }
  [[nodiscard]] std::span<std::byte> source(int message = 0) const { return peer_.source(message); }
  void send() { peer_.send(); }
  template <class Read>
  void receive(Read&& read) {
    peer_.receive();
    for (int m = 0; m < messages_; ++m) read(peer_.result(m));
  }

 private:
  MessagePeer& peer_;
  int messages_;
};

// A bare flag and copy. Sends all messages as one without packing, so no candidate that packs can be faster.
class SpeedOfLightEnd {
 public:
  SpeedOfLightEnd(const Group& group, std::int64_t bytes, std::int64_t whole)
      : speed_of_light_(group, whole), bytes_(bytes) {}
  void use(const SpeedOfLightVariant& variant) { speed_of_light_.use(variant); }
  [[nodiscard]] std::string_view name() const { return "speed of light"; }
  [[nodiscard]] std::span<std::byte> source(int message = 0) {
    return speed_of_light_.source().subspan(static_cast<std::size_t>(rounded(bytes_) * message),
                                            static_cast<std::size_t>(bytes_));
  }
  void send() noexcept { speed_of_light_.send(); }
  template <class Read>
  void receive(Read&& read) {
    speed_of_light_.receive(std::forward<Read>(read));
  }

 private:
  SpeedOfLight speed_of_light_;
  std::int64_t bytes_;
};

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

}  // namespace

std::vector<Samples> ping_pong(const Group& group, std::int64_t bytes, const MessageOptions& options) {
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
  if (options.get) candidates.push_back(onehop_ping_pong(group, bytes, true, Role::variant));
  if (arena.one_host()) {
    const auto end = std::make_shared<SpeedOfLightEnd>(group, bytes, bytes);
    candidates.push_back(speed_of_light_of(arena, end, speed_of_light_variants(bytes, true), options.effort, block));
    candidates.back().scale = one_way;
  }
  std::vector<std::unique_ptr<MessagePeer>> peers;
  if (options.peers) peers = mpi_to_and_fro_peers(group);
  for (const auto& peer : peers) {
    peer->prepare(bytes, 1);
    add(std::make_shared<MpiEnd>(*peer, 1), Role::peer);
  }
  return run_rounds(arena, candidates, options.effort);
}

std::vector<Samples> exchange(const Group& group, std::int64_t bytes, const MessageOptions& options) {
  const int messages = options.messages;
  if (bytes < 8 || bytes % 8 != 0 || messages < 1) {
    throw BadInput("expected messages of a multiple of 8 bytes, and at least one of them, found " +
                   std::to_string(messages) + " of " + base::counted(bytes, "byte"));
  }
  Arena arena(group);
  std::vector<Candidate> candidates;
  const auto block = [&](auto end) -> std::function<void(int)> {
    return [=, touch = std::make_shared<Touch>()](int repetitions) {
      both_ways(*end, *touch, bytes, messages, repetitions);
    };
  };
  const auto add = [&](auto end, Role role) { candidates.push_back({std::string(end->name()), role, block(end)}); };
  if (options.qspi) add(std::make_shared<QspiEnd>(1 - group.rank(), bytes, messages, true), Role::ours);
  add(std::make_shared<InPlaceEnd>(group, bytes, messages), options.qspi ? Role::variant : Role::ours);
  add(std::make_shared<PlanEnd>(group, bytes, messages), Role::variant);
  if (arena.one_host()) {
    const std::int64_t whole = rounded(bytes) * messages;
    const auto end = std::make_shared<SpeedOfLightEnd>(group, bytes, whole);
    candidates.push_back(speed_of_light_of(arena, end, speed_of_light_variants(whole, false), options.effort, block));
  }
  std::vector<std::unique_ptr<MessagePeer>> peers;
  if (options.peers) peers = mpi_both_ways_peers(group);
  for (const auto& peer : peers) {
    peer->prepare(bytes, messages);
    add(std::make_shared<MpiEnd>(*peer, messages), Role::peer);
  }
  return run_rounds(arena, candidates, options.effort);
}

}  // namespace onehop::bench
