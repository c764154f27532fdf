#include "bench/pingpong.h"

#include <memory>
#include <utility>

#include "bench/buffer.h"
#include "bench/mpi/peers.h"
#include "bench/qspi_messages.h"
#include "bench/speed_of_light.h"
#include "bench/touch.h"
#include "onehop/channel.h"
#include "onehop/tuning.h"

namespace onehop::bench {
namespace {

constexpr double one_way = 0.5;

// Sends one message from rank 0 to rank 1 and one back, `repetitions` times. An end has source(), send(), and
// receive(read), which calls read(part) for every part of the message.
template <class End>
void to_and_fro(End& end, Touch& touch, bool first, std::int64_t bytes, int repetitions) {
  const std::uint64_t lines = Touch::lines(bytes);
  const std::span<std::byte> source = end.source();
  const auto send = [&] {
    touch.dirty(source);
    touch.sent();
    end.send();
  };
  const auto receive = [&] {
    end.receive([&](std::span<const std::byte> part) { touch.read(part); });
    touch.received(lines, end.name());
  };
  for (int i = 0; i < repetitions; ++i) {
    if (first) send();
    receive();
    if (!first) send();
  }
}

class OnehopEnd {
 public:
  OnehopEnd(const Group& group, std::int64_t bytes, bool get) : source_(bytes), result_(get ? bytes : 0), get_(get) {
    const int peer = 1 - group.rank();
    // Nobody packs in place here, so long messages pass in fragments, as those of plans do.
    const std::int64_t slot_bytes = bytes > tuning().slot_bytes ? tuning().slot_bytes : 0;
    const ChannelSpec specs[] = {
        {.direction = ChannelSpec::Direction::send, .peer = peer, .bytes = bytes, .slot_bytes = slot_bytes},
        {.direction = ChannelSpec::Direction::receive, .peer = peer, .bytes = bytes, .slot_bytes = slot_bytes},
    };
    Channels channels = open_channels(group, specs, TransportKind::automatic);
    sender_ = std::move(channels.senders[0]);
    receiver_ = std::move(channels.receivers[0]);
    whole_ = receiver_.in_place() && receiver_.bytes() <= receiver_.ring().chunk_bytes;
  }

  [[nodiscard]] std::string_view name() const { return get_ ? "onehop, get" : "onehop"; }
  [[nodiscard]] std::span<std::byte> source() noexcept { return source_.bytes(); }
  void send() { sender_.put(source_.bytes()); }
  template <class Read>
  void receive(Read&& read) {
    if (get_) {
      receiver_.get(result_.bytes());
      read(std::span<const std::byte>(result_.bytes()));
    } else if (whole_) {
      read(receiver_.wait());
      receiver_.release();
    } else {
      receive_in_parts(read);
    }
  }

 private:
  // Out of line, or else clang inlines neither this nor the loop around short messages.
  template <class Read>
  [[gnu::noinline]] void receive_in_parts(Read& read) {
    receiver_.read([&](std::span<const std::byte> part, std::int64_t) { read(part); });
  }

  Buffer source_;
  Buffer result_;
  Sender sender_;
  Receiver receiver_;
  bool get_;
  bool whole_ = true;
};

class QspiEnd {
 public:
  QspiEnd(const Group& group, std::int64_t bytes)
      : source_(bytes), result_(bytes), messages_(make(1 - group.rank())), first_(group.rank() == 0) {}
  [[nodiscard]] std::string_view name() const { return "qspi"; }
  [[nodiscard]] std::span<std::byte> source() noexcept { return source_.bytes(); }
  // The rank that begins expects an answer; the other one expects nothing after its last message.
  void send() {
    if (first_) messages_.expect();
    messages_.send();
  }
  template <class Read>
  void receive(Read&& read) {
    messages_.receive();
    read(std::span<const std::byte>(result_.bytes()));
  }

 private:
  [[nodiscard]] QspiMessages make(int peer) const {
    const std::span<std::byte> source = source_.bytes();
    const std::span<std::byte> result = result_.bytes();
    return QspiMessages(peer, {&source, 1}, {&result, 1});
  }

  Buffer source_;
  Buffer result_;
  QspiMessages messages_;
  bool first_;
};

class MpiEnd {
 public:
  explicit MpiEnd(OneWayPeer& peer) : peer_(peer) {}
  [[nodiscard]] std::string_view name() const { return peer_.name(); }
  [[nodiscard]] std::span<std::byte> source() { return peer_.source(); }
  void send() { peer_.send(); }
  template <class Read>
  void receive(Read&& read) {
    read(peer_.receive());
  }

 private:
  OneWayPeer& peer_;
};

class SpeedOfLightEnd {
 public:
  SpeedOfLightEnd(const Group& group, std::int64_t bytes) : speed_of_light_(group, bytes) {}
  void use(const SpeedOfLightVariant& variant) { speed_of_light_.use(variant); }
  [[nodiscard]] std::string_view name() const { return "speed of light"; }
  [[nodiscard]] std::span<std::byte> source() { return speed_of_light_.source(); }
  void send() noexcept { speed_of_light_.send(); }
  template <class Read>
  void receive(Read&& read) {
    speed_of_light_.receive(std::forward<Read>(read));
  }

 private:
  SpeedOfLight speed_of_light_;
};

template <class End>
std::function<void(int)> block_of(std::shared_ptr<End> end, bool first, std::int64_t bytes,
                                  std::shared_ptr<Touch> touch) {
  return [end, first, bytes, touch](int repetitions) { to_and_fro(*end, *touch, first, bytes, repetitions); };
}

template <class End>
std::function<void(int)> block_of(std::shared_ptr<End> end, bool first, std::int64_t bytes) {
  return block_of(std::move(end), first, bytes, std::make_shared<Touch>());
}

// A bare flag and copy.
Candidate speed_of_light_of(Arena& arena, std::int64_t bytes, const Effort& effort) {
  const bool first = arena.rank() == 0;
  const auto speed_of_light = std::make_shared<SpeedOfLightEnd>(arena.group(), bytes);
  const auto touch = std::make_shared<Touch>();
  std::vector<Candidate> variants;
  for (const SpeedOfLightVariant& variant : speed_of_light_variants(bytes, true)) {
    const auto block = block_of(speed_of_light, first, bytes, touch);
    variants.push_back({variant.name, Role::speed_of_light,
                        [speed_of_light, variant, block](int repetitions) {
                          speed_of_light->use(variant);
                          block(repetitions);
                        },
                        one_way});
  }
  return fastest_variant(arena, std::move(variants), effort);
}

}  // namespace

std::vector<Samples> ping_pong(const Group& group, std::int64_t bytes, const PingPongOptions& options) {
  Arena arena(group);
  const bool first = group.rank() == 0;
  std::vector<Candidate> candidates;
  if (options.qspi) {
    candidates.push_back(
        {"qspi", Role::ours, block_of(std::make_shared<QspiEnd>(group, bytes), first, bytes), one_way});
  }
  candidates.push_back({"onehop", options.qspi ? Role::variant : Role::ours,
                        block_of(std::make_shared<OnehopEnd>(group, bytes, false), first, bytes), one_way});
  if (options.get) {
    candidates.push_back({"onehop, get", Role::variant,
                          block_of(std::make_shared<OnehopEnd>(group, bytes, true), first, bytes), one_way});
  }

  if (arena.one_host()) candidates.push_back(speed_of_light_of(arena, bytes, options.effort));
  std::vector<std::unique_ptr<OneWayPeer>> peers;
  if (options.peers) peers = mpi_one_way_peers(group);
  for (const auto& peer : peers) {
    peer->prepare(bytes);
    candidates.push_back(
        {std::string(peer->name()), Role::peer, block_of(std::make_shared<MpiEnd>(*peer), first, bytes), one_way});
  }
  return run_rounds(arena, candidates, options.effort);
}

}  // namespace onehop::bench
