#include "src/ucx/ends.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <string>

#include "onehop/error.h"
#include "src/group/group_state.h"

namespace onehop::detail::ucx {
namespace {

// Longer messages are put together by UCX in memory of its own. Several rails share a fragment in equal parts, but not
// in parts so short that the number of messages counts.
constexpr std::int64_t longest_part = 32 << 10;
constexpr std::int64_t shortest_part = 8 << 10;
constexpr std::int64_t part_unit = 512;
// The receiver of a channel keeps slots for this many bytes, at most so many, and at least as many as the sender.
constexpr std::int64_t received_bytes = 1 << 20;
constexpr std::int64_t most_received = 16;

std::int64_t part_length(std::int64_t slot_bytes, std::int64_t rails) {
  if (rails == 1) return longest_part;
  const std::int64_t share = (slot_bytes + rails * part_unit - 1) / (rails * part_unit) * part_unit;
  return std::clamp(share, shortest_part, longest_part);
}

[[noreturn]] void throw_lost(Endpoint& end, const Connections& connections, int peer) {
  GroupState& group = end.group();
  // The peer may have ended because another rank was lost before.
  if (const int first = group.poll_peers(peer).lost; first >= 0 && first != peer) {
    group.tell_lost(first);
    throw PeerLost(first, group.name_of(first) + " has ended, and after it " + group.name_of(peer) +
                              ", to which rank " + std::to_string(group.rank) + " is connected by " + end.name() +
                              " over UCX; " + group.where_to_look(first));
  }
  group.tell_lost(peer);
  throw PeerLost(peer, group.name_of(peer) + " has ended, closed its group or cannot be reached: rank " +
                           std::to_string(group.rank) + " uses " + end.name() + " over UCX, which reports: " +
                           connections.why_lost(peer) + "; " + group.where_to_look(peer));
}

}  // namespace

ChannelShape receiver_shape(const ChannelShape& shape) {
  ChannelShape own = shape;
  const std::int64_t fit = received_bytes / std::max<std::int64_t>(shape.slot_bytes, 1);
  own.slots = static_cast<int>(std::max<std::int64_t>(shape.slots, std::min(fit, most_received)));
  return own;
}

bool Filling::begin(const Part& part, std::int64_t bytes) noexcept {
  if (part.use < use_ || (part.use == use_ && bytes_ == length_)) return false;
  if (part.use > use_) {
    use_ = part.use;
    bytes_ = 0;
    in_order_ = 0;
    length_ = -1;
    chunks_ = 0;
    early_.clear();
  }
  if (part.chunks == whole) length_ = part.at + bytes;
  return true;
}

std::uint64_t Filling::count(const Part& part, std::int64_t end) noexcept {
  if (bytes_ == length_) return whole;
  // The chunks of the last part are those of the whole, which is not complete.
  const Early added{part.at, end, part.chunks == whole ? 0 : part.chunks};
  early_.insert(std::ranges::upper_bound(early_, added.first, {}, &Early::first), added);
  std::uint64_t chunks = 0;
  auto next = early_.begin();
  for (; next != early_.end() && next->first <= in_order_; ++next) {
    in_order_ = std::max(in_order_, next->last);
    chunks = std::max(chunks, next->chunks);
  }
  early_.erase(early_.begin(), next);
  if (chunks <= chunks_) return 0;
  chunks_ = chunks;
  return chunks;
}

SendEnd::SendEnd(std::shared_ptr<GroupState> group, const ChannelShape& shape, std::shared_ptr<Connections> connections,
                 bool puts)
    : Endpoint(std::move(group), shape),
      connections_(std::move(connections)),
      puts_(puts),
      part_bytes_(part_length(shape.slot_bytes, connections_->rails_to(shape.to))),
      rank_(this->group().rank),
      keeps_(!puts && connections_->rails_to(shape.to) > 1) {
  const ChannelShape own = keeps_ ? receiver_shape(shape) : shape;
  outgoing_ = std::make_shared<Outgoing>(static_cast<std::size_t>(own.slots));
  outgoing_->memory = allocate_ring(own, "UCX");
  ring_ = make_ring(own, outgoing_->memory.get());
  lengths_.resize(static_cast<std::size_t>(own.slots));
  remote_ = make_ring(receiver_shape(shape), nullptr);
  connections_->connect(shape.to);
  connections_->enlist(Kind::released, shape.to, shape.id, this);
  if (puts_) connections_->enlist(Kind::key, shape.to, shape.id, this);
}

void SendEnd::retire(SendEnd* end) {
  std::unique_ptr<SendEnd> owner(end);
  const std::shared_ptr<Connections> connections = end->connections_;
  const auto guard = connections->lock();
  if (!end->keeps_ || end->is_done() || !connections->is_this_process()) return;
  // They are kept by the connections, which the group owns.
  end->connections_ = std::shared_ptr<Connections>(std::shared_ptr<Connections>(), connections.get());
  end->forget_group();
  connections->retire(std::move(owner));
}

SendEnd::~SendEnd() {
  if (!connections_->is_this_process()) {
    [[maybe_unused]] auto* const kept = new (std::nothrow) std::shared_ptr<Outgoing>(std::move(outgoing_));
    return;
  }
  connections_->enlist(Kind::released, shape().to, shape().id, nullptr);
  if (puts_) connections_->enlist(Kind::key, shape().to, shape().id, nullptr);
  connections_->linger(std::move(outgoing_));
}

void SendEnd::published(std::uint64_t use, std::uint64_t chunks, std::int64_t bytes) {
  std::unique_lock<std::recursive_mutex> guard;
  if (keeps_) guard = connections_->lock();  // another thread may call send_again()
  if (!puts_) {
    send_parts(use, chunks, bytes);
  } else if (chunks == whole) {
    put(use, bytes);
  }
  if (chunks == whole) {
    given_ = use;
    at_ = 0;
    chunks_ = 0;
    lengths_[index(use)] = bytes;
  }
  progress();  // short messages complete at once, so the next put() finds its slot free
}

SendEnd::Way SendEnd::way(std::uint64_t use, std::int64_t at) const noexcept {
  if (!assigned_.empty()) {
    const auto& pieces = assigned_[(use - 1) % assigned_.size()];
    const auto piece = std::ranges::upper_bound(pieces, at, {}, &RailPiece::end);
    if (piece != pieces.end()) return {piece->rail, piece->end, longest_part};
  }
  return {.part_bytes = part_bytes_};
}

void SendEnd::send_parts(std::uint64_t use, std::uint64_t chunks, std::int64_t bytes) {
  // Chunks are as long as suits caches. Over a network every part costs a message, so short chunks travel together.
  if (chunks != whole && bytes - at_ < way(use, at_).part_bytes) return;
  send_range(use, at_, bytes, chunks);
  at_ = bytes;
  chunks_ = chunks;
}

void SendEnd::send_range(std::uint64_t use, std::int64_t first, std::int64_t last, std::uint64_t chunks) {
  do {
    const Way now = way(use, first);
    const std::int64_t length = std::min({now.part_bytes, now.end - first, last - first});
    const Part part{{rank_, shape().id}, use, first, first + length == last ? chunks : 0};
    const std::span data(slot(use) + ring_.payload + first, static_cast<std::size_t>(length));
    connections_->send(shape().to, {Kind::part, bytes_of(part), data}, &outgoing_->pending[index(use)], now.rail);
    first += length;
  } while (first < last);
}

// The receiver has not released these uses, but may have them all the same: it drops bytes that it has.
void SendEnd::send_again() noexcept {
  if (!keeps_ || closed_) return;
  for (std::uint64_t use = returned_ + 1; use <= given_; ++use) send_range(use, 0, lengths_[index(use)], whole);
  if (at_ > 0) send_range(given_ + 1, 0, at_, chunks_);
}

void SendEnd::put(std::uint64_t use, std::int64_t bytes) {
  if (key_ == nullptr) key_ = connections_->unpack_key(shape().to, packed_key_.data());
  const std::uint64_t to = remote_first_ + (use - 1) % remote_.slots * remote_.stride;
  connections_->put(shape().to, key_, {slot(use) + ring_.payload, static_cast<std::size_t>(bytes), to + ring_.payload},
                    {slot(use), sizeof(std::uint64_t), to}, &outgoing_->pending[index(use)]);
}

void SendEnd::update() {
  const auto guard = connections_->lock();
  if (keeps_) sent_ = returned_;  // whatever UCX still has of these uses, the receiver drops
  while (!keeps_ && sent_ < given_ && outgoing_->pending[index(sent_ + 1)] == 0) ++sent_;
  // The receiver has slots for `remote_.slots` uses that it has not released.
  const std::uint64_t free = std::min(sent_, returned_ + (remote_.slots - ring_.slots));
  if (free > released_word.load(std::memory_order_relaxed)) released_word.store(free, std::memory_order_release);
}

void SendEnd::progress() {
  const bool lost = connections_->lost(shape().to);
  connections_->progress();
  update();
  if (lost && was_lost_) throw_lost(*this, *connections_, shape().to);
  was_lost_ = lost;
}

void SendEnd::arrived(const std::byte* header, std::size_t header_bytes, const std::byte* data,
                      std::size_t bytes) noexcept {
  if (bytes > 0 && header_bytes == sizeof(SlotsAt)) {
    SlotsAt slots;
    std::memcpy(&slots, header, sizeof slots);
    remote_first_ = slots.address;
    packed_key_.assign(data, data + bytes);
  } else if (header_bytes == sizeof(Release)) {
    Release release;
    std::memcpy(&release, header, sizeof release);
    closed_ |= release.use == Release::closed;
    if (!closed_) returned_ = std::max(returned_, release.use);
  }
}

ReceiveEnd::ReceiveEnd(std::shared_ptr<GroupState> group, const ChannelShape& shape,
                       std::shared_ptr<Connections> connections, bool puts)
    : Endpoint(std::move(group), shape), connections_(std::move(connections)) {
  const ChannelShape own = receiver_shape(shape);
  memory_ = allocate_ring(own, "UCX");
  ring_ = make_ring(own, memory_.get());
  filling_.resize(static_cast<std::size_t>(own.slots));
  for (Filling& one : filling_) one.expect(static_cast<std::size_t>(shape.slot_bytes / shortest_part) + 2);
  if (puts) registered_ = std::make_unique<Registered>(connections_->context(), memory_.get(), ring_bytes(own));
  connections_->connect(shape.from);
  connections_->enlist(Kind::part, shape.from, shape.id, this);
}

ReceiveEnd::~ReceiveEnd() {
  if (!group().process.is_this_process()) {
    [[maybe_unused]] auto* const memory = memory_.release();
    [[maybe_unused]] auto* const registered = registered_.release();
    return;
  }
  connections_->enlist(Kind::part, shape().from, shape().id, nullptr);
  if (connections_->rails_to(shape().from) > 1) {
    const Release release{{group().rank, shape().id}, Release::closed};
    connections_->send(shape().from, {Kind::released, bytes_of(release), {}}, nullptr);
  }
  if (registered_ != nullptr) connections_->keep({std::move(memory_), std::move(registered_)});
}

void ReceiveEnd::announce() {
  if (registered_ == nullptr) return;
  const SlotsAt slots{{group().rank, shape().id}, reinterpret_cast<std::uint64_t>(ring_.first)};
  connections_->send(shape().from, {Kind::key, bytes_of(slots), registered_->key}, nullptr);
}

void ReceiveEnd::released(std::uint64_t use) {
  const Release release{{group().rank, shape().id}, use};
  connections_->send(shape().from, {Kind::released, bytes_of(release), {}}, nullptr);
}

void ReceiveEnd::send_again() noexcept {
  if (const std::uint64_t use = released_word.load(std::memory_order_relaxed); use > 0) released(use);
}

void ReceiveEnd::progress() {
  const bool lost = connections_->lost(shape().from);
  connections_->progress();
  if (lost && was_lost_) throw_lost(*this, *connections_, shape().from);
  was_lost_ = lost;
}

void ReceiveEnd::arrived(const std::byte* header, std::size_t header_bytes, const std::byte* data,
                         std::size_t bytes) noexcept {
  Part part;
  if (header_bytes != sizeof part) return;
  std::memcpy(&part, header, sizeof part);
  const auto at = static_cast<std::size_t>((part.use - 1) % ring_.slots);
  std::byte* const slot = ring_.first + at * ring_.stride;
  const auto length = static_cast<std::int64_t>(bytes);
  if (part.at < 0 || part.at > ring_.slot_bytes - length) return;
  const std::uint64_t complete = filling_[at].add(part, length, [&](const Filling::Range& fresh) {
    std::memcpy(slot + ring_.payload + fresh.first, data + (fresh.first - part.at),
                static_cast<std::size_t>(fresh.last - fresh.first));
  });
  if (complete != 0) ring_.flag_at(slot).store(flag_value(part.use, complete), std::memory_order_release);
}

}  // namespace onehop::detail::ucx
