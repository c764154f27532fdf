#include "compat/shared/queue.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "onehop/error.h"

namespace onehop::compat {
namespace {

constexpr std::int64_t memory_budget = 32 << 20;  // bytes of one rank's deep queues, unless min_slots need more
constexpr std::int64_t max_slots = 32;
constexpr std::int64_t min_slots = 4;
constexpr std::int64_t line_bytes = 56;  // a cache line without its flag
constexpr int line_slots = 8;
constexpr int main_slots = 2;
constexpr std::int64_t chunks_of_main = 8;

// The beginning of a message longer than this has left the caches when its end has been received.
constexpr std::size_t past_caches = 4 << 20;

// Precedes each message, begins each slot, and follows the last message of a slot.
struct Header {
  std::uint64_t bytes = 0;  // of the message
  std::uint32_t tag = 0;
  std::uint32_t slot = 0;  // its number
};

constexpr std::uint32_t rest_tag = first_reserved_tag;     // the message of the previous slot continues
constexpr std::uint32_t end_tag = first_reserved_tag + 1;  // the rest of the slot is empty

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }
std::size_t index(Queue queue) { return static_cast<std::size_t>(queue); }

Header header_at(const Receiver& queue, std::size_t at) {
  Header header;
  std::memcpy(&header, queue.payload() + at, sizeof header);
  return header;
}

}  // namespace

QueueShapes::QueueShapes(int ranks, std::int64_t chunk_bytes) {
  const auto shape = [](Queue queue, std::int64_t bytes, std::int64_t slots, std::int64_t chunk) {
    return ChannelSpec{.bytes = bytes,
                       .tag = static_cast<int>(queue),
                       .slots = static_cast<int>(slots),
                       .slot_bytes = bytes,
                       .chunk_bytes = chunk};
  };
  const std::int64_t deep_slots =
      std::clamp(memory_budget / (chunk_bytes * std::max(ranks - 1, 1)), min_slots, max_slots);
  shapes_ = {shape(Queue::line, line_bytes, line_slots, line_bytes),
             shape(Queue::main, chunks_of_main * chunk_bytes, main_slots, chunk_bytes),
             shape(Queue::deep, chunk_bytes, deep_slots, chunk_bytes)};
}

void QueueShapes::add(int peer, std::vector<ChannelSpec>& specs) const {
  for (const auto direction : {ChannelSpec::Direction::send, ChannelSpec::Direction::receive}) {
    for (ChannelSpec spec : shapes_) {
      spec.direction = direction;
      spec.peer = peer;
      specs.push_back(spec);
    }
  }
}

void Outgoing::open(std::span<Sender> senders) { std::ranges::move(senders, queues_.begin()); }

void Outgoing::progress() {
  for (Sender& queue : queues_) queue.progress();
}

void Outgoing::send(Message& message, bool may_wait) {
  pending_.push(message);
  push(may_wait);
}

bool Outgoing::push() { return push(false); }

bool Outgoing::push(bool may_wait) {
  bool moved = false;
  while (!pending_.empty() && write(pending_.front(), may_wait)) {
    if (Message& message = pending_.front(); message.left_ == 0) {
      pending_.pop();
      message.active_ = false;
    }
    moved = true;
  }
  if (!may_wait) close();
  return moved;
}

// Returns the queue with a free slot that suits the message best; null if no slot is free.
Sender* Outgoing::free_queue(const Message& message, bool may_wait) {
  Sender& line = queues_[index(Queue::line)];
  if (!may_wait && sizeof(Header) + message.left_ <= index(line.bytes()) && line.ready()) return &line;
  for (const Queue queue : {Queue::main, Queue::deep}) {
    if (queues_[index(queue)].ready()) return &queues_[index(queue)];
  }
  return nullptr;
}

void Outgoing::write_header(std::uint32_t tag, std::size_t bytes) {
  const Header header{bytes, tag, slots_};
  std::memcpy(slot_->payload() + used_, &header, sizeof header);
  used_ += sizeof header;
}

// Appends the message, or as much of it as fits, to the current slot. Returns false if no slot is free.
bool Outgoing::write(Message& message, bool may_wait) {
  if (slot_ != nullptr && room() < sizeof(Header) + std::min(message.left_, index(slot_->ring().chunk_bytes))) close();
  if (slot_ == nullptr) {
    slot_ = free_queue(message, may_wait);
    if (slot_ == nullptr) return false;
    used_ = 0;
    chunks_ = 0;
    if (message.begun_) write_header(rest_tag, message.left_);
  }
  if (!message.begun_) write_header(message.tag, message.left_);
  message.begun_ = true;
  write_part(message, std::min(room(), message.left_));
  used_ = padded(used_);
  if (message.left_ > 0) close();
  return true;
}

// Publishes each chunk as soon as it is full.
void Outgoing::write_part(Message& message, std::size_t bytes) {
  const std::size_t chunk = index(slot_->ring().chunk_bytes);
  const StoreKind stores = message.stores(bytes);
  while (bytes > 0) {
    const std::size_t chunk_end = (chunks_ + 1) * chunk;
    if (used_ >= chunk_end) {
      slot_->publish(++chunks_, static_cast<std::int64_t>(used_));
      continue;
    }
    const std::size_t length = std::min(bytes, chunk_end - used_);
    message.cursor_.read({slot_->payload() + used_, length}, stores);
    message.left_ -= length;
    used_ += length;
    bytes -= length;
  }
}

void Outgoing::close() {
  if (slot_ == nullptr) return;
  if (room() >= sizeof(Header)) write_header(end_tag, 0);
  slot_->publish(detail::whole, static_cast<std::int64_t>(used_));
  slot_->advance();
  slot_ = nullptr;
  ++slots_;
}

void Incoming::open(int from, int to, std::span<Receiver> receivers) {
  from_ = from;
  to_ = to;
  std::ranges::move(receivers, queues_.begin());
}

void Incoming::progress() {
  for (Receiver& queue : queues_) queue.progress();
}

void Incoming::check_length(const Message& message, std::size_t bytes) const {
  if (message.exact ? bytes == message.layout->bytes : bytes <= message.layout->bytes) return;
  throw Mismatch("rank " + std::to_string(to_) + " receives " + std::to_string(message.layout->bytes) +
                 " bytes from rank " + std::to_string(from_) + ", which sent " + std::to_string(bytes));
}

void Incoming::receive(Message& message) {
  if (!aside_.empty()) {
    const auto aside = std::ranges::find(aside_, message.tag, &Aside::tag);
    if (aside != aside_.end()) {
      check_length(message, aside->bytes.size());
      message.cursor_.write(std::span(aside->bytes).first(aside->arrived), StoreKind::plain);
      message.left_ = aside->bytes.size() - aside->arrived;
      message.active_ = into_aside_ == &*aside;
      if (message.active_) {
        into_aside_ = nullptr;
        into_ = &message;
      }
      aside_.erase(aside);
      return;
    }
  }
  wanted_.push(message);
}

void Incoming::deliver(Message& sent) {
  std::vector<std::byte> bytes(sent.left_);
  sent.cursor_.read(bytes, StoreKind::plain);
  sent.active_ = false;
  begin(sent.tag, bytes.size());
  arrive(bytes);
}

void Incoming::begin(std::uint32_t tag, std::size_t bytes) {
  Message* const wanted = wanted_.take(tag);
  if (wanted == nullptr) {
    into_aside_ = &aside_.emplace_back(Aside{tag, std::vector<std::byte>(bytes), 0});
    return;
  }
  check_length(*wanted, bytes);
  into_ = wanted;
  into_->left_ = bytes;
}

// Returns how many bytes of the message that is arriving have not arrived.
std::size_t Incoming::missing() const noexcept {
  if (into_ != nullptr) return into_->left_;
  return into_aside_ != nullptr ? into_aside_->bytes.size() - into_aside_->arrived : 0;
}

void Incoming::arrive(std::span<const std::byte> part) {
  if (into_ != nullptr) {
    const bool past = into_->layout->bytes > past_caches && into_->stores(part.size()) == StoreKind::nontemporal;
    into_->cursor_.write(part, past ? StoreKind::nontemporal : StoreKind::plain);
    into_->left_ -= part.size();
    if (into_->left_ == 0) std::exchange(into_, nullptr)->active_ = false;
    return;
  }
  if (!part.empty()) std::memcpy(into_aside_->bytes.data() + into_aside_->arrived, part.data(), part.size());
  into_aside_->arrived += part.size();
  if (into_aside_->arrived == into_aside_->bytes.size()) into_aside_ = nullptr;
}

// Returns the queue that holds the next slot; null if none of that slot has arrived.
Receiver* Incoming::next_queue() {
  for (Receiver& queue : queues_) {
    if (queue.has(1) && header_at(queue, 0).slot == slots_) return &queue;
  }
  return nullptr;
}

bool Incoming::can_pull() {
  if (slot_ == nullptr) return next_queue() != nullptr;
  return slot_->ready() || slot_->has(chunks_ + 1);
}

bool Incoming::pull() {
  bool moved = false;
  for (;;) {
    if (slot_ == nullptr) {
      slot_ = next_queue();
      at_ = 0;
      chunks_ = 0;
    }
    if (slot_ == nullptr || !pull_slot(*slot_)) return moved;
    moved = true;
  }
}

// Reads what has arrived of a slot, and releases the slot once it has read all. Returns whether it read anything.
bool Incoming::pull_slot(Receiver& queue) {
  const std::size_t bytes = index(queue.bytes());
  const std::size_t chunk = index(queue.ring().chunk_bytes);
  const std::uint64_t before = chunks_;
  while (chunks_ < bytes / chunk && queue.has(chunks_ + 1)) ++chunks_;
  const bool all = queue.ready();  // read after has(): a slot that was complete then is complete now
  if (!all && chunks_ == before) return false;
  const std::size_t end = all ? bytes : chunks_ * chunk;
  while (end - at_ >= sizeof(Header) || (at_ > 0 && missing() > 0 && at_ < end)) {
    if (at_ > 0 && missing() > 0) {
      const std::size_t length = std::min(missing(), end - at_);
      arrive({queue.payload() + at_, length});
      at_ = std::min(padded(at_ + length), end);
      continue;
    }
    const Header header = header_at(queue, at_);
    if (header.tag == end_tag) break;
    at_ += sizeof header;
    if (header.tag == rest_tag) continue;
    begin(header.tag, header.bytes);
    if (header.bytes == 0) arrive({});
  }
  if (all) {
    queue.release();
    slot_ = nullptr;
    ++slots_;
  }
  return true;
}

}  // namespace onehop::compat
