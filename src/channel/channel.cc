#include "onehop/channel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <tuple>

#include "onehop/staging.h"
#include "src/base/clock.h"
#include "src/base/cpu.h"
#include "src/base/text.h"
#include "src/channel/adaptive_stores.h"
#include "src/channel/channel_agreement.h"
#include "src/channel/channel_specs.h"
#include "src/channel/store.h"
#include "src/channel/wait_limits.h"
#include "src/channel/waiting.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"

namespace onehop {
namespace {

constexpr std::array<std::string_view, 5> transport_names = {"automatic", "shared_memory", "mpi", "ucx", "mock"};

[[noreturn]] void throw_size(const detail::Endpoint& end, std::int64_t expected, std::size_t found) {
  throw BadInput(end.name() + ": expected a message of " + base::counted(expected, "byte") + ", found " +
                 std::to_string(found));
}

[[noreturn]] void throw_in_place(const detail::Endpoint& end, const detail::SlotRing& ring) {
  throw BadInput(end.name() + ": a message of " + base::counted(ring.message_bytes, "byte") +
                 " is longer than a slot (" + base::counted(ring.slot_bytes, "byte") +
                 ") and cannot be used in place; use put(message) and get(message), or "
                 "ask for a larger slot_bytes");
}

[[noreturn]] void throw_poisoned(const detail::Endpoint& end) {
  throw Error(end.name() + " failed inside a message (" + end.poisoned +
              "); the start of the next message is unknown, so this end cannot be used again; open new "
              "channels on both ranks");
}

// This rank waits on a channel to itself, so nothing can serve the other end.
[[noreturn]] void throw_self_deadlock(const detail::Endpoint& end, bool sends) {
  const std::string rank = "rank " + std::to_string(end.shape().from);
  throw BadInput(end.name() + (sends ? " has no free slot, and only " + rank +
                                           " itself, which waits here, can free one; "
                                           "receive a message first, or ask for more slots or a larger slot_bytes"
                                     : " is empty, and only " + rank +
                                           " itself, which waits here, can send on it; put a "
                                           "message before receiving it"));
}

// Whether a wait can never end because both ends belong to this rank. Transports that need progress() get some polls
// first.
bool is_self_deadlock(detail::Endpoint& end, bool polls, int& failed_polls) {
  constexpr int max_failed_polls = 1000;
  return end.shape().from == end.shape().to && (!polls || ++failed_polls > max_failed_polls) && end.self_deadlock();
}

// Waits until `ready()`.
template <class Ready>
void wait_until(detail::Endpoint& end, int peer, bool sends, const Ready& ready) {
  end.group().check_process();
  if (!end.poisoned.empty()) throw_poisoned(end);
  const bool polls = end.needs_progress();
  int failed_polls = 0;
  detail::Waiting waiting(end.group(), polls);
  while (!ready()) {
    if (is_self_deadlock(end, polls, failed_polls)) throw_self_deadlock(end, sends);
    if (polls) {
      end.progress();
      if (ready()) return;
    }
    waiting.idle(ready, [&] { return detail::WaitingFor{peer, end.name()}; });
  }
}

// State of a poisoned end. Its flags are never ready, the words and the slot that it writes are never read, and its use
// number exceeds all flags. So every call reaches throw_poisoned without an extra test on the fast path.
constexpr std::uint64_t no_use = (std::uint64_t{1} << (64 - detail::chunk_bits)) - 2;
constinit std::atomic<std::uint64_t> never{0};
constinit std::atomic<std::uint64_t> unread{0};
constinit std::atomic<std::uint32_t> silent{0};
alignas(64) constinit std::array<std::byte, 64> nowhere{};

}  // namespace

void store_bytes(StoreKind kind, std::byte* to, std::span<const std::byte> from) {
  detail::store_function(kind)(to, from.data(), from.size());
}

void store_piece(StoreKind kind, std::byte* to, std::span<const std::byte> from) {
  detail::piece_function(kind)(to, from.data(), from.size());
}

void finish_pieces(StoreKind kind) noexcept { detail::finish_stores(kind); }

TransportKind transport_from_string(std::string_view name) {
  if (name == "auto") return TransportKind::automatic;
  const auto found = std::find(transport_names.begin(), transport_names.end(), name);
  if (found == transport_names.end()) {
    throw BadInput("expected a transport (auto, shared_memory, mpi, ucx, mock), found '" + std::string(name) + "'");
  }
  return static_cast<TransportKind>(found - transport_names.begin());
}

std::string_view to_string(TransportKind kind) { return transport_names.at(static_cast<std::size_t>(kind)); }

void Sender::wait_released() {
  wait_until(*endpoint_, peer_, true, [this] { return ready(); });
}

void Sender::ring_bell(std::uint64_t chunks, std::int64_t bytes) { endpoint_->published(use_ + 1, chunks, bytes); }
void Sender::throw_not_in_place() const { throw_in_place(*endpoint_, ring_); }
void Sender::progress() { endpoint_->progress(); }
bool Sender::needs_progress() const { return endpoint_->needs_progress(); }
int Sender::rails() const { return endpoint_->rails(); }
void Sender::assign_rails(const std::vector<std::vector<detail::RailPiece>>& uses) { endpoint_->assign_rails(uses); }

void Sender::begin_use(std::int64_t bytes, StoreTarget target) {
  if (!adaptive_) return;
  stores_ = adaptive_->begin(use_ + 1, bytes, target);
  const std::uint64_t mark =
      (adaptive_->times() ? detail::mark_timed : 0) | (target == StoreTarget::array ? detail::mark_in_array : 0);
  ring_.mark_at(at_).store(mark, std::memory_order_relaxed);
}

bool Sender::times_use() const noexcept { return adaptive_ && adaptive_->times(); }
void Sender::stored(double seconds) noexcept {
  if (adaptive_) adaptive_->stored(seconds);
}
StoreKind Sender::best_stores(StoreTarget target) const noexcept {
  return adaptive_ ? adaptive_->chosen(target) : stores_;
}

void Sender::invalidate() {
  endpoint_->poisoned = detail::message_of(std::current_exception());
  ring_.first = ring_.end = at_ = nowhere.data();
  ring_.stride = 0;
  use_ = no_use;
  free_uses_ = 0;
  released_ = &never;
  bell_ = &silent;
  simple_bytes_ = not_simple;
}

void Sender::put_in_chunks(std::span<const std::byte> message) {
  if (static_cast<std::int64_t>(message.size()) != ring_.message_bytes) {
    throw_size(*endpoint_, ring_.message_bytes, message.size());
  }
  // Like write(), with the chosen kind of stores.
  if (!adaptive()) {
    const detail::StoreFunction store = detail::store_function(stores_);
    write([&](std::span<std::byte> part, std::int64_t at) {
      if (!part.empty()) store(part.data(), message.data() + at, part.size());
    });
    return;
  }
  detail::StoreFunction store = nullptr;
  write([&](std::span<std::byte> part, std::int64_t at) {
    if (part.data() == payload()) {
      begin_use(std::min(ring_.message_bytes - at, ring_.slot_bytes));
      store = detail::store_function(stores_);
    }
    const double begin = times_use() ? base::steady_seconds() : 0;
    store(part.data(), message.data() + at, part.size());
    if (times_use()) stored(base::steady_seconds() - begin);
  });
}

namespace {

// Polls a flag for a short while; returns whether it has been stored. A short message is often under way already, and
// this loop sees it sooner than the general one, which costs more for each poll and at the end of the wait.
bool poll_shortly(const detail::Endpoint& end, const std::atomic<std::uint64_t>& stored, std::uint64_t flag) {
  constexpr int most = 64;
  if (end.group().oversubscribed || end.needs_progress()) return false;
  const int polls = std::min(most, detail::wait_limits.spins);
  for (int i = 0; i < polls; ++i) {
    if (i >= detail::wait_limits.polls_without_pause) cpu::pause();
    if (stored.load(std::memory_order_acquire) >= flag) return true;
  }
  return false;
}

// Kept out of line, so that a short wait saves no registers for it.
[[gnu::noinline]] void wait_for_flag(detail::Endpoint& end, int peer, const std::atomic<std::uint64_t>& stored,
                                     std::uint64_t flag) {
  wait_until(end, peer, false, [&stored, flag] { return stored.load(std::memory_order_acquire) >= flag; });
}

}  // namespace

void Receiver::wait_arrived(std::uint64_t flag) {
  const std::atomic<std::uint64_t>& stored = ring_.flag_at(at_);
  if (!poll_shortly(*endpoint_, stored, flag)) wait_for_flag(*endpoint_, peer_, stored, flag);
}

double Receiver::now() noexcept { return base::steady_seconds(); }

void Receiver::was_read(double seconds) noexcept {
  if (forks_ != detail::forks.load(std::memory_order_relaxed)) return;  // a child may not answer; release() throws
  seconds_ = timed_use_ == use_ + 1 ? seconds_ + seconds : seconds;
  timed_use_ = use_ + 1;
  reading_time_->store(detail::reading_time(timed_use_, seconds_), std::memory_order_relaxed);
}

void Receiver::begin_reading() {
  if (!in_place()) throw_in_place(*endpoint_, ring_);
  if (times_use()) reading_since_ = now();
}

void Receiver::end_reading() noexcept {
  was_read(now() - reading_since_);
  reading_since_ = 0;
}

void Receiver::ring_bell() { endpoint_->released(use_); }
void Receiver::throw_forked() const {
  detail::throw_forked(endpoint_->group().process,
                       endpoint_->name() + " of rank " + std::to_string(endpoint_->group().rank));
}
void Receiver::progress() { endpoint_->progress(); }
bool Receiver::needs_progress() const { return endpoint_->needs_progress(); }

void Receiver::invalidate() {
  endpoint_->poisoned = detail::message_of(std::current_exception());
  ring_.first = ring_.end = at_ = nowhere.data();
  ring_.stride = 0;
  use_ = no_use;
  released_ = &unread;
  bell_ = &silent;
}

void Receiver::get(std::span<std::byte> message) {
  const std::int64_t total = ring_.message_bytes;
  if (static_cast<std::int64_t>(message.size()) != total) throw_size(*endpoint_, total, message.size());
  read([&](std::span<const std::byte> part, std::int64_t at) {
    if (!part.empty()) std::memcpy(message.data() + at, part.data(), part.size());
  });
}

// Builds the two ends from the parts that a transport returns.
struct ChannelAccess {
  static Sender sender(detail::SenderParts parts) {
    Sender made;
    const detail::ChannelShape& shape = parts.endpoint->shape();
    made.ring_ = parts.ring;
    made.at_ = parts.ring.first;
    made.released_ = parts.released;
    made.bell_ = parts.bell;
    made.stores_ = shape.stores;
    made.peer_ = shape.to;
    made.forks_ = detail::forks.load(std::memory_order_relaxed);
    made.free_uses_ = parts.ring.slots;
    const bool simple = parts.reading_time == nullptr && shape.bytes <= shape.slot_bytes &&
                        shape.bytes <= shape.chunk_bytes && shape.stores == StoreKind::plain;
    made.simple_bytes_ = simple ? static_cast<std::size_t>(shape.bytes) : Sender::not_simple;
    if (parts.reading_time != nullptr) {
      made.adaptive_ = std::make_shared<detail::AdaptiveStores>(
          shape.stores, shape.slots, std::min(shape.bytes, shape.slot_bytes), *parts.reading_time, *parts.released);
      made.exposed_ = parts.reading_time + 1;
    }
    made.endpoint_ = std::move(parts.endpoint);
    return made;
  }

  static detail::AdaptiveStores& adaptive(Sender& end) { return *end.adaptive_; }
  static detail::Endpoint& endpoint(const Receiver& end) { return *end.endpoint_; }

  static Receiver receiver(detail::ReceiverParts parts) {
    Receiver made;
    made.ring_ = parts.ring;
    made.at_ = parts.ring.first;
    made.released_ = parts.released;
    made.bell_ = parts.bell;
    made.release_mask_ = parts.release_mask;
    made.reading_time_ = parts.reading_time;
    made.simple_ = made.in_place() && parts.reading_time == nullptr;
    if (parts.reading_time != nullptr) made.exposed_ = parts.reading_time + 1;
    made.peer_ = parts.endpoint->shape().from;
    made.forks_ = detail::forks.load(std::memory_order_relaxed);
    made.endpoint_ = std::move(parts.endpoint);
    return made;
  }
};

namespace {

using Key = std::tuple<bool, int, int>;  // sends, peer, tag

// The transports that a TransportKind allows, and the one that carries the channels to each rank.
struct Routes {
  std::vector<detail::Transport*> transports;
  std::unique_ptr<detail::Transport> mock;
  std::string without_ucx;  // why there is none, if that matters

  Routes(detail::GroupState& group, TransportKind kind) {
    if (kind == TransportKind::mock) {
      mock = detail::make_mock_transport();
      transports = {mock.get()};
      return;
    }
    if (kind == TransportKind::automatic || kind == TransportKind::shared_memory) {
      if (group.shared_memory == nullptr) group.shared_memory = detail::make_shared_memory_transport(group);
      transports.push_back(group.shared_memory.get());
    }
    if (detail::Transport* between = network(group, kind)) transports.push_back(between);
    if (kind == TransportKind::automatic) without_ucx = group.without_ucx;
    if (transports.empty()) {
      throw BadInput("the transport 'mpi' needs a group made from MPI, and this one comes from '" + group.origin +
                     "'; start the program with mpiexec");
    }
  }

  [[nodiscard]] static bool uses_ucx(const detail::GroupState& group, TransportKind kind) {
    if (kind != TransportKind::automatic) return kind == TransportKind::ucx;
    return group.spans_hosts && (group.remote == nullptr || group.prefers_ucx);
  }

  // The transport between hosts; null if there is none. Makes UCX's with the first channels that need it, which is
  // collective: whether it is made depends on nothing that differs between ranks.
  [[nodiscard]] static detail::Transport* network(detail::GroupState& group, TransportKind kind) {
    if (!uses_ucx(group, kind)) return kind == TransportKind::shared_memory ? nullptr : group.remote.get();
    if (group.ucx == nullptr && group.without_ucx.empty()) {
      try {
        group.ucx = detail::make_ucx_transport(group);
      } catch (const Mismatch&) {
        throw;
      } catch (const PeerLost&) {
        throw;
      } catch (const Timeout&) {
        throw;
      } catch (const Error& error) {
        group.without_ucx = error.what();  // it throws on every rank
      }
    }
    if (kind == TransportKind::ucx && group.ucx == nullptr) throw Error(group.without_ucx);
    return group.ucx.get();
  }

  // Index of the transport that reaches `rank`; throws if none does.
  [[nodiscard]] std::size_t to(int rank) const {
    std::string why = without_ucx;
    for (std::size_t i = 0; i < transports.size(); ++i) {
      const std::string trouble = transports[i]->unreachable(rank);
      if (trouble.empty()) return i;
      why += (why.empty() ? "" : "; ") + trouble;
    }
    throw Error("no channel to rank " + std::to_string(rank) + " is possible: " + why +
                "; ranks on several machines need UCX or an MPI launcher");
  }

  // "shared_memory, mpi"
  [[nodiscard]] std::string names() const {
    std::string all;
    for (const detail::Transport* transport : transports)
      all += (all.empty() ? "" : ", ") + std::string(transport->name());
    return all;
  }
};

// This rank's requests with all defaults filled in. Throws if no transport can serve one; errors that all ranks can
// detect are left to match().
std::vector<detail::Wanted> requests(const detail::GroupState& group, std::span<const ChannelSpec> specs,
                                     const Routes& routes) {
  std::int64_t slot_limit = std::numeric_limits<std::int64_t>::max();
  for (const detail::Transport* transport : routes.transports)
    slot_limit = std::min(slot_limit, transport->max_slot_bytes());
  std::vector<detail::Wanted> own;
  own.reserve(specs.size());
  for (const ChannelSpec& spec : specs) {
    own.push_back(detail::wanted(spec, group.rank));
    own.back().slot_bytes = std::min(own.back().slot_bytes, slot_limit);
    if (spec.peer >= 0 && spec.peer < group.size) static_cast<void>(routes.to(spec.peer));
  }
  return own;
}

}  // namespace

void refuse_channels(const Group& group, const std::string& why) {
  try {
    detail::exchange_refusal(*group.state(), why);
  } catch (const Error&) {
    return;  // a lost peer, for example; the error that this rank throws next says more
  }
}

namespace {

Channels open(const Group& group, std::span<const ChannelSpec> specs, TransportKind kind, bool backed) {
  const std::shared_ptr<detail::GroupState>& state = group.state();
  std::optional<Routes> routes;
  std::vector<detail::Wanted> own;
  try {
    routes.emplace(*state, kind);
    own = requests(*state, specs, *routes);
  } catch (const Mismatch&) {
    throw;  // found in a collective step, by every rank: another step would wait for a rank that makes other ones
  } catch (const std::exception& error) {
    refuse_channels(group, error.what());
    throw;
  }
  const auto shapes = detail::agree_on_channels(*state, own, routes->names(), backed);

  std::vector<std::vector<detail::ChannelShape>> by_transport(routes->transports.size());
  for (const detail::ChannelShape& shape : shapes) {
    by_transport[routes->to(shape.from == state->rank ? shape.to : shape.from)].push_back(shape);
  }
  std::map<Key, Sender> senders;
  std::map<Key, Receiver> receivers;
  for (std::size_t i = 0; i < by_transport.size(); ++i) {
    detail::Transport& transport = *routes->transports[i];
    detail::Opened opened =
        backed ? transport.open(state, by_transport[i]) : transport.open_unbacked(state, by_transport[i]);
    for (auto& parts : opened.senders) {
      const detail::ChannelShape shape = parts.endpoint->shape();
      senders[{true, shape.to, shape.tag}] = ChannelAccess::sender(std::move(parts));
    }
    for (auto& parts : opened.receivers) {
      const detail::ChannelShape shape = parts.endpoint->shape();
      receivers[{false, shape.from, shape.tag}] = ChannelAccess::receiver(std::move(parts));
    }
  }
  Channels channels;
  for (const ChannelSpec& spec : specs) {
    if (spec.direction == ChannelSpec::Direction::send) {
      channels.senders.push_back(std::move(senders.at({true, spec.peer, spec.tag})));
    } else {
      channels.receivers.push_back(std::move(receivers.at({false, spec.peer, spec.tag})));
    }
  }
  return channels;
}

}  // namespace

Channels open_channels(const Group& group, std::span<const ChannelSpec> specs, TransportKind kind) {
  return open(group, specs, kind, true);
}

Channels open_channels_unbacked(const Group& group, std::span<const ChannelSpec> specs, TransportKind kind) {
  return open(group, specs, kind, false);
}

std::string carrier(const Group& group, int rank, TransportKind kind) {
  const detail::GroupState& state = *group.state();
  if (kind == TransportKind::mock) return "mock";
  const bool may_share = kind == TransportKind::automatic || kind == TransportKind::shared_memory;
  if (may_share && state.shares_memory(rank)) return "shared_memory";
  const detail::Transport* const between = Routes::uses_ucx(state, kind) ? state.ucx.get() : state.remote.get();
  if (between == nullptr) return {};
  const std::string more = between->describe(rank);
  return std::string(between->name()) + (more.empty() ? "" : ": " + more);
}

bool detail::puts_next(Sender& sender, std::int64_t bytes) noexcept {
  return ChannelAccess::adaptive(sender).puts_next(bytes);
}

std::int64_t back_slots(const Receiver& one) { return ChannelAccess::endpoint(one).back_slots(); }

}  // namespace onehop
