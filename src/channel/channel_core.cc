// The slow paths of the two ends of a channel.
#include "onehop/detail/channel_core.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "onehop/channel.h"
#include "src/base/clock.h"
#include "src/base/cpu.h"
#include "src/base/text.h"
#include "src/channel/adaptive_stores.h"
#include "src/channel/store.h"
#include "src/channel/transport/transport.h"
#include "src/channel/wait_limits.h"
#include "src/channel/waiting.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"

namespace onehop {
namespace detail {
namespace {

[[noreturn]] void throw_size(const Endpoint& end, std::int64_t expected, std::size_t found) {
  throw BadInput(end.name() + ": expected a message of " + base::counted(expected, "byte") + ", found " +
                 std::to_string(found));
}

[[noreturn]] void throw_in_place(const Endpoint& end, const SlotRing& ring) {
  throw BadInput(end.name() + ": a message of " + base::counted(ring.message_bytes, "byte") +
                 " is longer than a slot (" + base::counted(ring.slot_bytes, "byte") +
                 ") and cannot be used in place; use put(message) and get(message), or "
                 "ask for a larger slot_bytes");
}

[[noreturn]] void throw_poisoned(const Endpoint& end) {
  throw Error(end.name() + " failed inside a message (" + end.poisoned +
              "); the start of the next message is unknown, so this end cannot be used again; open new "
              "channels on both ranks");
}

// This rank waits on a channel to itself, so nothing can serve the other end.
[[noreturn]] void throw_self_deadlock(const Endpoint& end, bool sends) {
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
bool is_self_deadlock(Endpoint& end, bool polls, int& failed_polls) {
  constexpr int max_failed_polls = 1000;
  return end.shape().from == end.shape().to && (!polls || ++failed_polls > max_failed_polls) && end.self_deadlock();
}

// Waits until `ready()`.
template <class Ready>
void wait_until(Endpoint& end, int peer, bool sends, const Ready& ready) {
  end.group().check_process();
  if (!end.poisoned.empty()) throw_poisoned(end);
  const bool polls = end.needs_progress();
  int failed_polls = 0;
  Waiting waiting(end.group(), polls);
  while (!ready()) {
    if (is_self_deadlock(end, polls, failed_polls)) throw_self_deadlock(end, sends);
    if (polls) {
      end.progress();
      if (ready()) return;
    }
    waiting.idle(ready, [&] { return WaitingFor{peer, end.name()}; });
  }
}

// State of a poisoned end. Its flags are never ready, the words and the slot that it writes are never read, and its use
// number exceeds all flags. So every call reaches throw_poisoned without an extra test on the fast path.
constexpr std::uint64_t no_use = (std::uint64_t{1} << (64 - chunk_bits)) - 2;
constinit std::atomic<std::uint64_t> never{0};
constinit std::atomic<std::uint64_t> unread{0};
constinit std::atomic<std::uint32_t> silent{0};
alignas(64) constinit std::array<std::byte, 64> nowhere{};

// Polls a flag for a short while; returns whether it has been stored. A short message is often under way already, and
// this loop sees it sooner than the general one, which costs more for each poll and at the end of the wait.
bool poll_shortly(const Endpoint& end, const std::atomic<std::uint64_t>& stored, std::uint64_t flag) {
  constexpr int most = 64;
  if (end.group().oversubscribed || end.needs_progress()) return false;
  const int polls = std::min(most, wait_limits.spins);
  for (int i = 0; i < polls; ++i) {
    if (i >= wait_limits.polls_without_pause) cpu::pause();
    if (stored.load(std::memory_order_acquire) >= flag) return true;
  }
  return false;
}

// Kept out of line, so that a short wait saves no registers for it.
[[gnu::noinline]] void wait_for_flag(Endpoint& end, int peer, const std::atomic<std::uint64_t>& stored,
                                     std::uint64_t flag) {
  wait_until(end, peer, false, [&stored, flag] { return stored.load(std::memory_order_acquire) >= flag; });
}

}  // namespace

SenderCore::SenderCore(SenderParts&& parts)
    : at_(parts.ring.first),
      free_uses_(parts.ring.slots),
      released_(parts.released),
      bell_(parts.bell),
      ring_(parts.ring),
      stores_(parts.endpoint->shape().stores),
      peer_(parts.endpoint->shape().to),
      forks_(forks.load(std::memory_order_relaxed)),
      endpoint_(std::move(parts.endpoint)) {
  const ChannelShape& shape = endpoint_->shape();
  const bool simple = parts.reading_time == nullptr && shape.bytes <= shape.slot_bytes &&
                      shape.bytes <= shape.chunk_bytes && shape.stores == StoreKind::plain;
  simple_bytes_ = simple ? static_cast<std::size_t>(shape.bytes) : not_simple;
  if (parts.reading_time == nullptr) return;
  adaptive_ = std::make_shared<AdaptiveStores>(shape.stores, shape.slots, std::min(shape.bytes, shape.slot_bytes),
                                               *parts.reading_time, *parts.released);
  exposed_ = parts.reading_time + 1;
}

void SenderCore::wait_released() {
  wait_until(*endpoint_, peer_, true, [this] { return ready(); });
}

void SenderCore::ring_bell(std::uint64_t chunks, std::int64_t bytes) { endpoint_->published(use_ + 1, chunks, bytes); }
void SenderCore::throw_not_in_place() const { throw_in_place(*endpoint_, ring_); }
void SenderCore::progress() { endpoint_->progress(); }
bool SenderCore::needs_progress() const { return endpoint_->needs_progress(); }
int SenderCore::rails() const { return endpoint_->rails(); }
void SenderCore::assign_rails(const std::vector<std::vector<RailPiece>>& uses) { endpoint_->assign_rails(uses); }

void SenderCore::begin_use(std::int64_t bytes, StoreTarget target) {
  if (!adaptive_) return;
  stores_ = adaptive_->begin(use_ + 1, bytes, target);
  const std::uint64_t mark = (adaptive_->times() ? mark_timed : 0) | (target == StoreTarget::array ? mark_in_array : 0);
  ring_.mark_at(at_).store(mark, std::memory_order_relaxed);
}

bool SenderCore::puts_next(std::int64_t bytes) noexcept { return adaptive_->puts_next(bytes); }
bool SenderCore::times_use() const noexcept { return adaptive_ && adaptive_->times(); }
void SenderCore::stored(double seconds) noexcept {
  if (adaptive_) adaptive_->stored(seconds);
}
StoreKind SenderCore::best_stores(StoreTarget target) const noexcept {
  return adaptive_ ? adaptive_->chosen(target) : stores_;
}

void SenderCore::invalidate() {
  endpoint_->poisoned = message_of(std::current_exception());
  ring_.first = ring_.end = at_ = nowhere.data();
  ring_.stride = 0;
  use_ = no_use;
  free_uses_ = 0;
  released_ = &never;
  bell_ = &silent;
  simple_bytes_ = not_simple;
}

ReceiverCore::ReceiverCore(ReceiverParts&& parts)
    : at_(parts.ring.first),
      release_mask_(parts.release_mask),
      released_(parts.released),
      reading_time_(parts.reading_time),
      exposed_(parts.reading_time == nullptr ? nullptr : parts.reading_time + 1),
      bell_(parts.bell),
      ring_(parts.ring),
      peer_(parts.endpoint->shape().from),
      forks_(forks.load(std::memory_order_relaxed)),
      simple_(in_place() && parts.reading_time == nullptr),
      endpoint_(std::move(parts.endpoint)) {}

void ReceiverCore::wait_arrived(std::uint64_t flag) {
  const std::atomic<std::uint64_t>& stored = ring_.flag_at(at_);
  if (!poll_shortly(*endpoint_, stored, flag)) wait_for_flag(*endpoint_, peer_, stored, flag);
}

double ReceiverCore::now() noexcept { return base::steady_seconds(); }

void ReceiverCore::was_read(double seconds) noexcept {
  if (forks_ != forks.load(std::memory_order_relaxed)) return;  // a child may not answer; release() throws
  seconds_ = timed_use_ == use_ + 1 ? seconds_ + seconds : seconds;
  timed_use_ = use_ + 1;
  reading_time_->store(reading_time(timed_use_, seconds_), std::memory_order_relaxed);
}

void ReceiverCore::begin_reading() {
  if (!in_place()) throw_in_place(*endpoint_, ring_);
  if (times_use()) reading_since_ = now();
}

void ReceiverCore::end_reading() noexcept {
  was_read(now() - reading_since_);
  reading_since_ = 0;
}

void ReceiverCore::ring_bell() { endpoint_->released(use_); }
void ReceiverCore::throw_forked() const {
  detail::throw_forked(endpoint_->group().process,
                       endpoint_->name() + " of rank " + std::to_string(endpoint_->group().rank));
}
void ReceiverCore::progress() { endpoint_->progress(); }
bool ReceiverCore::needs_progress() const { return endpoint_->needs_progress(); }
std::int64_t ReceiverCore::back_slots() const { return endpoint_->back_slots(); }

void ReceiverCore::invalidate() {
  endpoint_->poisoned = message_of(std::current_exception());
  ring_.first = ring_.end = at_ = nowhere.data();
  ring_.stride = 0;
  use_ = no_use;
  released_ = &unread;
  bell_ = &silent;
}

}  // namespace detail

void Sender::put_in_chunks(std::span<const std::byte> message) {
  if (static_cast<std::int64_t>(message.size()) != ring_.message_bytes) {
    detail::throw_size(*endpoint_, ring_.message_bytes, message.size());
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

void Receiver::get(std::span<std::byte> message) {
  const std::int64_t total = ring_.message_bytes;
  if (static_cast<std::int64_t>(message.size()) != total) detail::throw_size(*endpoint_, total, message.size());
  read([&](std::span<const std::byte> part, std::int64_t at) {
    if (!part.empty()) std::memcpy(message.data() + at, part.data(), part.size());
  });
}

}  // namespace onehop
