#include "shared/post.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "onehop/tuning.h"

namespace onehop::door {
namespace {

// There are enough slots for the messages of a step of most programs, so that sends seldom wait.
constexpr std::int64_t memory_budget = 32 << 20;  // of one rank's slots, if that leaves it a few
constexpr std::int64_t most_slots = 32;
constexpr std::int64_t fewest_slots = 4;

constexpr int busy_looks = 300;       // before giving way
constexpr int kind_looks = 3000;      // before sleeping
constexpr double nap = 0.002;         // seconds of a sleep, after which everything is looked at again
constexpr std::size_t by_hand = 256;  // shorter pieces gain nothing by the tuning's kind of stores

// A message longer than this is in no cache any more when it has been received as a whole.
constexpr std::size_t past_caches = 4 << 20;

// In front of a message's first bytes.
struct Header {
  std::uint64_t bytes = 0;
  std::uint32_t tag = 0;
  std::uint32_t unused = 0;
};

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void Layout::add(std::ptrdiff_t at, std::size_t length) {
  if (length == 0) return;
  bytes += length;
  if (!blocks.empty() && blocks.back().at + static_cast<std::ptrdiff_t>(blocks.back().bytes) == at) {
    blocks.back().bytes += length;
  } else {
    blocks.push_back({at, length});
  }
}

template <class Visit>
void Cursor::walk(std::size_t bytes, Visit visit) {
  while (bytes > 0) {
    const Layout::Block& block = layout_->blocks[block_];
    const std::size_t length = std::min(bytes, block.bytes - within_);
    visit(base_ + block.at + within_, length);
    bytes -= length;
    within_ += length;
    if (within_ == block.bytes) {
      ++block_;
      within_ = 0;
    }
  }
}

// Copies with the kind of stores, which finish() ends.
class Copier {
 public:
  explicit Copier(StoreKind stores) : stores_(stores) {}
  void copy(std::byte* to, const std::byte* from, std::size_t length) {
    if (stores_ == StoreKind::plain || length < by_hand) {
      std::memcpy(to, from, length);
    } else {
      store_piece(stores_, to, {from, length});
      unfinished_ = true;
    }
  }
  void finish() const {
    if (unfinished_) finish_pieces(stores_);
  }

 private:
  StoreKind stores_;
  bool unfinished_ = false;
};

void Cursor::read(std::span<std::byte> to, StoreKind stores) {
  Copier copier(stores);
  walk(to.size(), [&, at = to.data()](const std::byte* from, std::size_t length) mutable {
    copier.copy(at, from, length);
    at += length;
  });
  copier.finish();
}

void Cursor::write(std::span<const std::byte> from, StoreKind stores) {
  Copier copier(stores);
  walk(from.size(), [&, at = from.data()](std::byte* to, std::size_t length) mutable {
    copier.copy(to, at, length);
    at += length;
  });
  copier.finish();
}

Post::Post(const Group& group, std::int64_t slot_bytes)
    : group_(group), rank_(group.rank()), size_(group.size()), peers_(index(group.size())) {
  using Direction = ChannelSpec::Direction;
  const std::int64_t slots =
      std::clamp(memory_budget / (slot_bytes * std::max(size_ - 1, 1)), fewest_slots, most_slots);
  std::vector<ChannelSpec> specs;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    for (const Direction direction : {Direction::send, Direction::receive}) {
      specs.push_back({.direction = direction,
                       .peer = other,
                       .bytes = slot_bytes,
                       .slots = static_cast<int>(slots),
                       .slot_bytes = slot_bytes,
                       .chunk_bytes = slot_bytes});
    }
  }
  Channels channels = open_channels(group_, specs);
  std::size_t next = 0;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    at(other).sender = std::move(channels.senders[next]);
    at(other).receiver = std::move(channels.receivers[next]);
    ++next;
  }
}

void Post::send(Message& message) {
  if (message.active_) throw BadInput("a message was started that is under way already; wait for it first");
  message.active_ = true;
  message.begun_ = false;
  message.left_ = message.layout->bytes;
  message.cursor_ = Cursor(*message.layout, message.base);
  if (message.peer == rank_) {
    deliver_here(message);
    return;
  }
  Peer& peer = at(message.peer);
  peer.outgoing.push_back(&message);
  push(peer);
}

// A message to this rank itself is put aside, from where it is received like any other.
void Post::deliver_here(Message& message) {
  Aside& aside = at(rank_).aside.emplace_back(Aside{message.tag, std::vector<std::byte>(message.left_), message.left_});
  message.cursor_.read(aside.bytes, StoreKind::plain);
  message.active_ = false;
  Peer& self = at(rank_);
  const auto wanted = std::ranges::find(self.wanted, message.tag, [](const Message* each) { return each->tag; });
  if (wanted == self.wanted.end()) return;
  Message& receiver = **wanted;
  self.wanted.erase(wanted);
  receiver.active_ = false;
  receive(receiver);
}

void Post::check_length(int from, const Message& message, std::size_t bytes) const {
  if (bytes <= message.layout->bytes) return;
  throw Mismatch("rank " + std::to_string(rank_) + " receives " + std::to_string(message.layout->bytes) +
                 " bytes from rank " + std::to_string(from) + ", which sent " + std::to_string(bytes));
}

void Post::receive(Message& message) {
  if (message.active_) throw BadInput("a message was started that is under way already; wait for it first");
  message.active_ = true;
  message.cursor_ = Cursor(*message.layout, message.base);
  Peer& peer = at(message.peer);
  const auto aside = std::ranges::find(peer.aside, message.tag, &Aside::tag);
  if (aside == peer.aside.end()) {
    peer.wanted.push_back(&message);
    return;
  }
  check_length(message.peer, message, aside->bytes.size());
  message.cursor_.write(std::span(aside->bytes).first(aside->arrived), StoreKind::plain);
  message.left_ = aside->bytes.size() - aside->arrived;
  if (peer.into_aside == &*aside) {
    peer.into_aside = nullptr;
    peer.into = &message;
  } else {
    message.active_ = false;
  }
  peer.aside.erase(aside);
}

bool Post::push(Peer& peer) {
  bool moved = false;
  while (!peer.outgoing.empty() && peer.sender.ready()) {
    Message& message = *peer.outgoing.front();
    std::byte* to = peer.sender.payload();
    std::size_t room = index(peer.sender.bytes());
    std::size_t used = 0;
    if (!message.begun_) {
      const Header header{message.left_, message.tag, 0};
      std::memcpy(to, &header, sizeof header);
      used = sizeof header;
      room -= used;
      message.begun_ = true;
    }
    const std::size_t length = std::min(room, message.left_);
    message.cursor_.read({to + used, length}, tuning().rule(static_cast<std::int64_t>(message.layout->bytes)).stores);
    message.left_ -= length;
    peer.sender.publish(detail::whole, static_cast<std::int64_t>(used + length));
    peer.sender.advance();
    if (message.left_ == 0) {
      message.active_ = false;
      peer.outgoing.pop_front();
    }
    moved = true;
  }
  return moved;
}

void Post::begin_arrival(int number, Peer& peer, std::uint32_t tag, std::size_t bytes) {
  const auto wanted = std::ranges::find(peer.wanted, tag, [](const Message* each) { return each->tag; });
  if (wanted == peer.wanted.end()) {
    peer.into_aside = &peer.aside.emplace_back(Aside{tag, std::vector<std::byte>(bytes), 0});
    return;
  }
  check_length(number, **wanted, bytes);
  peer.into = *wanted;
  peer.into->left_ = bytes;
  peer.wanted.erase(wanted);
}

void Post::arrive(Peer& peer, std::span<const std::byte> part) {
  if (peer.into != nullptr) {
    const std::size_t bytes = peer.into->layout->bytes;
    const StoreKind stores = tuning().rule(static_cast<std::int64_t>(bytes)).stores;
    const bool past = bytes > past_caches && stores == StoreKind::nontemporal;
    peer.into->cursor_.write(part, past ? stores : StoreKind::plain);
    peer.into->left_ -= part.size();
    if (peer.into->left_ == 0) {
      peer.into->active_ = false;
      peer.into = nullptr;
    }
    return;
  }
  Aside& aside = *peer.into_aside;
  if (!part.empty()) std::memcpy(aside.bytes.data() + aside.arrived, part.data(), part.size());
  aside.arrived += part.size();
  if (aside.arrived == aside.bytes.size()) peer.into_aside = nullptr;
}

bool Post::pull(int number, Peer& peer) {
  bool moved = false;
  while (peer.receiver.ready()) {
    const std::byte* from = peer.receiver.payload();
    std::size_t room = index(peer.receiver.bytes());
    if (peer.into == nullptr && peer.into_aside == nullptr) {
      Header header;
      std::memcpy(&header, from, sizeof header);
      from += sizeof header;
      room -= sizeof header;
      begin_arrival(number, peer, header.tag, header.bytes);
    }
    const std::size_t left =
        peer.into != nullptr ? peer.into->left_ : peer.into_aside->bytes.size() - peer.into_aside->arrived;
    arrive(peer, {from, std::min(room, left)});
    peer.receiver.release();
    moved = true;
  }
  return moved;
}

bool Post::progress() {
  bool moved = false;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    Peer& peer = at(other);
    if (peer.receiver.needs_progress()) peer.receiver.progress();
    moved |= pull(other, peer);
    if (peer.outgoing.empty()) continue;
    if (peer.sender.needs_progress()) peer.sender.progress();
    moved |= push(peer);
  }
  return moved;
}

// Nothing moved. After a while sleeps in naps, in which the channel from the peer looks after whether everybody still lives.
void Post::idle(Patience& patience, int peer) {
  if (peer == rank_) {
    throw BadInput("rank " + std::to_string(rank_) + " waits for a message from itself that it has not sent");
  }
  if (++patience.looks < busy_looks) return pause();
  if (patience.looks < kind_looks) {
    sched_yield();
    return;
  }
  const double limit = group_.timeout();
  group_.set_timeout(limit > 0 ? std::min(nap, limit) : nap);
  try {
    static_cast<void>(at(peer).receiver.wait());
    group_.set_timeout(limit);
  } catch (const Timeout&) {
    group_.set_timeout(limit);
    patience.asleep += nap;
    if (limit > 0 && patience.asleep >= limit) throw;
  } catch (...) {
    group_.set_timeout(limit);
    throw;
  }
}

Circle::Circle(Post& post, std::vector<int> ranks, int me, std::uint32_t tag)
    : post_(post), ranks_(std::move(ranks)), me_(me), out_(ranks_.size()), in_(ranks_.size()) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    out_[i].peer = in_[i].peer = ranks_[i];
    out_[i].tag = in_[i].tag = tag;
    out_[i].layout = in_[i].layout = &layout_;
  }
}

void Circle::wait(std::vector<Message>& messages) {
  post_.wait([&messages, next = std::size_t{0}]() mutable {
    while (next < messages.size() && !messages[next].active()) ++next;
    return next < messages.size() ? messages[next].peer : -1;
  });
}

std::span<const std::byte> Circle::all_to_all(const std::byte* first, std::size_t stride, std::size_t bytes) {
  if (layout_.bytes != bytes) layout_ = Layout(bytes);
  result_.resize(bytes * ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const std::byte* const from = first + stride * i;
    std::byte* const to = result_.data() + bytes * i;
    if (static_cast<int>(i) == me_) {
      if (bytes > 0) std::memcpy(to, from, bytes);
      continue;
    }
    in_[i].base = to;
    post_.receive(in_[i]);
    out_[i].base = const_cast<std::byte*>(from);  // only read
    post_.send(out_[i]);
  }
  wait(in_);
  wait(out_);
  return result_;
}

std::span<const std::byte> Circle::gather(std::span<const std::byte> mine) {
  return all_to_all(mine.data(), 0, mine.size());
}

std::span<const std::byte> Circle::exchange(std::span<const std::byte> parts) {
  const std::size_t bytes = parts.size() / ranks_.size();
  return all_to_all(parts.data(), bytes, bytes);
}

void Circle::broadcast(std::span<std::byte> bytes, int root) {
  if (layout_.bytes != bytes.size()) layout_ = Layout(bytes.size());
  if (me_ != root) {
    Message& message = in_[index(root)];
    message.base = bytes.data();
    post_.receive(message);
    post_.wait(message);
    return;
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (static_cast<int>(i) == me_) continue;
    out_[i].base = bytes.data();
    post_.send(out_[i]);
  }
  wait(out_);
}

}  // namespace onehop::door
