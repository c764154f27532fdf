#include "bench/native/pingpong.h"

#include <memory>
#include <utility>

#include "bench/native/mpi/peers.h"
#include "bench/native/qspi_messages.h"
#include "bench/native/speed_of_light.h"
#include "measure/buffer.h"
#include "measure/pingpong.h"

namespace onehop::bench {
namespace {

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
  candidates.push_back(onehop_ping_pong(group, bytes, false, options.qspi ? Role::variant : Role::ours));
  if (options.get) candidates.push_back(onehop_ping_pong(group, bytes, true, Role::variant));
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
