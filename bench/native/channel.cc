#include "bench/native/channel.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/native/mpi/peers.h"
#include "bench/native/qspi_messages.h"
#include "bench/native/speed_of_light.h"
#include "measure/buffer.h"
#include "measure/touch.h"
#include "onehop/plan.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/channel/store.h"

namespace onehop::bench {
namespace {

constexpr std::int64_t line = 64;

// Several consecutive messages, each of which begins at a cache line.
class Messages {
 public:
  Messages(std::int64_t bytes, int count) : bytes_(bytes), count_(count), memory_(stride() * count) {}
  [[nodiscard]] std::int64_t stride() const noexcept { return (bytes_ + line - 1) / line * line; }
  [[nodiscard]] std::int64_t total() const noexcept { return stride() * count_; }
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] std::span<std::byte> operator[](int message) const noexcept {
    return memory_.bytes().subspan(static_cast<std::size_t>(stride() * message), static_cast<std::size_t>(bytes_));
  }

 private:
  std::int64_t bytes_;
  int count_;
  Buffer memory_;
};

// Runs one exchange `repetitions` times. An end has source(message), and exchange(read), which calls read(part) for
// every part of the received messages.
template <class End>
void both_ways(End& end, Touch& touch, std::int64_t bytes, int messages, int repetitions) {
  const std::uint64_t lines = Touch::lines(bytes);
  for (int i = 0; i < repetitions; ++i) {
    for (int m = 0; m < messages; ++m) touch.dirty(end.source(m), lines * static_cast<std::uint64_t>(m));
    touch.sent();
    end.exchange([&](std::span<const std::byte> part) { touch.read(part); });
    touch.received(lines * static_cast<std::uint64_t>(messages), end.name());
  }
}

// All messages share one slot and one flag. They are packed directly into the slot and read there.
class InPlaceEnd {
 public:
  InPlaceEnd(const Group& group, std::int64_t bytes, int messages) : sources_(bytes, messages), bytes_(bytes) {
    const int peer = 1 - group.rank();
    const std::int64_t total = sources_.total();
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
  template <class Read>
  void exchange(Read&& read) {
    sender_.write([this](std::span<std::byte> part, std::int64_t offset) { pack(part, offset); });
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
    const std::int64_t stride = sources_.stride();
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
  template <class Read>
  void exchange(Read&& read) {
    plan_.run();
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
    for (int m = 0; m < messages; ++m) {
      schedule.arrays.push_back({"out" + std::to_string(m), 8, ElementType::bytes, {elements}});
      schedule.arrays.push_back({"in" + std::to_string(m), 8, ElementType::bytes, {elements}});
      arrays.push_back(sources_[m]);
      arrays.push_back(results_[m]);
    }
    for (int from = 0; from < 2; ++from) {
      for (int m = 0; m < messages; ++m) {
        const Slice all = Slice::range(0, elements);
        schedule.rounds[0].transfers.push_back({{from, 2 * m, all}, {1 - from, 2 * m + 1, all}});
      }
    }
    return Plan(group, schedule, arrays, {.transport = TransportKind::automatic});
  }

  Messages sources_;
  Messages results_;
  Plan plan_;
};

class QspiEnd {
 public:
  QspiEnd(const Group& group, std::int64_t bytes, int messages)
      : sources_(bytes, messages), results_(bytes, messages), messages_(make(1 - group.rank())) {}

  [[nodiscard]] std::string_view name() const { return "qspi"; }
  [[nodiscard]] std::span<std::byte> source(int message) const { return sources_[message]; }
  template <class Read>
  void exchange(Read&& read) {
    messages_.expect();
    messages_.send();
    messages_.receive();
    for (int m = 0; m < results_.count(); ++m) read(std::span<const std::byte>(results_[m]));
  }

 private:
  [[nodiscard]] QspiMessages make(int peer) const {
    std::vector<std::span<std::byte>> sources;
    std::vector<std::span<std::byte>> results;
    for (int m = 0; m < sources_.count(); ++m) {
      sources.push_back(sources_[m]);
      results.push_back(results_[m]);
    }
    return QspiMessages(peer, sources, results);
  }

  Messages sources_;
  Messages results_;
  QspiMessages messages_;
};

class MpiEnd {
 public:
  MpiEnd(ExchangePeer& peer, int messages) : peer_(peer), messages_(messages) {}
  [[nodiscard]] std::string_view name() const { return peer_.name(); }
  [[nodiscard]] std::span<std::byte> source(int message) const { return peer_.source(message); }
  template <class Read>
  void exchange(Read&& read) {
    peer_.exchange();
    for (int m = 0; m < messages_; ++m) read(peer_.result(m));
  }

 private:
  ExchangePeer& peer_;
  int messages_;
};

// Sends all messages as one without packing, so no candidate that packs can be faster.
class SpeedOfLightEnd {
 public:
  SpeedOfLightEnd(const Group& group, std::int64_t bytes, int messages)
      : speed_of_light_(group, (bytes + line - 1) / line * line * messages), bytes_(bytes) {}
  void use(const SpeedOfLightVariant& variant) { speed_of_light_.use(variant); }
  [[nodiscard]] std::string_view name() const { return "speed of light"; }
  [[nodiscard]] std::span<std::byte> source(int message) {
    return speed_of_light_.source().subspan(static_cast<std::size_t>((bytes_ + line - 1) / line * line * message),
                                            static_cast<std::size_t>(bytes_));
  }
  template <class Read>
  void exchange(Read&& read) {
    speed_of_light_.send();
    speed_of_light_.receive(std::forward<Read>(read));
  }

 private:
  SpeedOfLight speed_of_light_;
  std::int64_t bytes_;
};

template <class End>
std::function<void(int)> block_of(std::shared_ptr<End> end, std::int64_t bytes, int messages,
                                  std::shared_ptr<Touch> touch) {
  return [=](int repetitions) { both_ways(*end, *touch, bytes, messages, repetitions); };
}

Candidate speed_of_light_of(Arena& arena, std::int64_t bytes, const ExchangeOptions& options) {
  const int messages = options.messages;
  const auto end = std::make_shared<SpeedOfLightEnd>(arena.group(), bytes, messages);
  const auto block = block_of(end, bytes, messages, std::make_shared<Touch>());
  std::vector<Candidate> variants;
  for (const SpeedOfLightVariant& variant :
       speed_of_light_variants((bytes + line - 1) / line * line * messages, false)) {
    variants.push_back({variant.name, Role::speed_of_light, [end, variant, block](int repetitions) {
                          end->use(variant);
                          block(repetitions);
                        }});
  }
  return fastest_variant(arena, std::move(variants), options.effort);
}

}  // namespace

std::vector<Samples> exchange(const Group& group, std::int64_t bytes, const ExchangeOptions& options) {
  if (bytes < 8 || bytes % 8 != 0 || options.messages < 1) {
    throw BadInput("expected messages of a multiple of 8 bytes, and at least one of them, found " +
                   std::to_string(options.messages) + " of " + base::counted(bytes, "byte"));
  }
  Arena arena(group);
  const int messages = options.messages;
  std::vector<Candidate> candidates;
  const auto add = [&](auto end, Role role) {
    candidates.push_back({std::string(end->name()), role, block_of(end, bytes, messages, std::make_shared<Touch>())});
  };
  if (options.qspi) add(std::make_shared<QspiEnd>(group, bytes, messages), Role::ours);
  add(std::make_shared<InPlaceEnd>(group, bytes, messages), options.qspi ? Role::variant : Role::ours);
  add(std::make_shared<PlanEnd>(group, bytes, messages), Role::variant);
  if (arena.one_host()) candidates.push_back(speed_of_light_of(arena, bytes, options));
  std::vector<std::unique_ptr<ExchangePeer>> peers;
  if (options.peers) peers = mpi_exchange_peers(group);
  for (const auto& peer : peers) {
    peer->prepare(bytes, messages);
    add(std::make_shared<MpiEnd>(*peer, messages), Role::peer);
  }
  return run_rounds(arena, candidates, options.effort);
}

}  // namespace onehop::bench
