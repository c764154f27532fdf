#include "exchange.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "onehop/error.h"

namespace onehop::tensors::detail {

namespace {

using onehop::detail::copy_bytes;
using onehop::detail::whole;

constexpr int paths = 3;  // announcements, first phase, second phase
constexpr std::int64_t default_slot_bytes = 256 << 10;
constexpr int default_slots = 4;

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

std::string describe(const Announcement& what) {
  const std::string count = std::to_string(what.elements);
  const std::string numbers = count + " " + std::string(to_string(what.type)) + " (" + std::string(to_string(what.op)) +
                              ", " + std::string(to_string(what.codec)) + ", " +
                              std::string(to_string(what.algorithm)) + ", chunks of 2^" +
                              std::to_string(what.log2_chunk) + " elements)";
  switch (what.kind) {
    case Announcement::Kind::barrier:
      return "a barrier";
    case Announcement::Kind::allreduce:
      return "an all-reduce of " + numbers;
    case Announcement::Kind::reduce_scatter:
      return "a reduce-scatter of blocks of " + numbers;
    case Announcement::Kind::allgather:
      return "an all-gather of " + count + " bytes in all";
    case Announcement::Kind::broadcast:
      return "a broadcast of " + count + " bytes from rank " + std::to_string(what.root);
    case Announcement::Kind::all_to_all:
      return "an all-to-all";
  }
  return "an operation that this rank does not know";
}

// The table that rank 0 has for the group: the ranks' files may differ, and all must choose the same.
ReduceTable agreed_table(const Group& group, TransportKind transport) {
  bool in_memory = transport != TransportKind::mpi;
  for (int r = 0; r < group.size(); ++r) in_memory = in_memory && group.shares_memory(r);
  const std::string mine = group.rank() == 0 ? to_json(reduce_tables()) : "";
  const Gathered all = group.allgather(std::as_bytes(std::span(mine)));
  const std::string first(reinterpret_cast<const char*>(all[0].data()), all[0].size());
  return table_for(reduce_tables_from_json(first), in_memory, group.size());
}

}  // namespace

void Arrays::set(const std::byte* source, std::byte* result, std::int64_t element_bytes) {
  element_bytes_ = element_bytes;
  source_ = source;
  result_ = result;
  begins_.clear();
}

void Arrays::set(std::span<const Part> parts, std::int64_t element_bytes) {
  if (parts.size() == 1) return set(parts.front().source, parts.front().result, element_bytes);
  element_bytes_ = element_bytes;
  parts_.assign(parts.begin(), parts.end());
  begins_.clear();
  std::int64_t begin = 0;
  for (const Part& part : parts) {
    begins_.push_back(begin);
    begin += part.elements;
  }
}

std::size_t Arrays::find(std::int64_t element) const {
  return index(std::upper_bound(begins_.begin(), begins_.end(), element) - begins_.begin() - 1);
}

bool Arrays::in_one_piece(const Range& range, std::size_t part) const {
  return range.last <= begins_[part] + parts_[part].elements;
}

const std::byte* Arrays::source(const Range& range) const {
  if (begins_.empty()) return source_ + range.first * element_bytes_;
  const std::size_t i = find(range.first);
  return in_one_piece(range, i) ? parts_[i].source + (range.first - begins_[i]) * element_bytes_ : nullptr;
}

std::byte* Arrays::result(const Range& range) const {
  if (begins_.empty()) return result_ + range.first * element_bytes_;
  const std::size_t i = find(range.first);
  return in_one_piece(range, i) ? parts_[i].result + (range.first - begins_[i]) * element_bytes_ : nullptr;
}

Exchange::Exchange(const Group& of, const CollectivesOptions& options)
    : group(of), rank(of.rank()), size(of.size()), sources_(index(of.size())), shifted_(index(of.size())) {
  slot_bytes = options.slot_bytes != 0 ? options.slot_bytes : default_slot_bytes;
  slots_ = options.slots != 0 ? options.slots : default_slots;
  if (slots_ < 2) {  // a rank would wait for others to take what it sends before it takes what they send
    throw BadInput("Collectives need 2 slots or more on each path, found " + std::to_string(slots_));
  }
  using Direction = ChannelSpec::Direction;
  std::vector<ChannelSpec> specs;
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    for (const Direction direction : {Direction::send, Direction::receive}) {
      specs.push_back({.direction = direction, .peer = other, .bytes = sizeof(Line), .tag = 0});
      for (int tag = 1; tag < paths; ++tag) {
        specs.push_back({.direction = direction,
                         .peer = other,
                         .bytes = slot_bytes,
                         .tag = tag,
                         .slots = slots_,
                         .slot_bytes = slot_bytes,
                         .chunk_bytes = slot_bytes});
      }
    }
  }
  Channels channels = open_channels(group, specs, options.transport);
  auto sender = channels.senders.begin();
  auto receiver = channels.receivers.begin();
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    Peer& peer = peers_.emplace_back();
    peer.rank = other;
    for (Sender* end : {&peer.line_out, &peer.fold_out, &peer.spread_out}) *end = std::move(*sender++);
    for (Receiver* end : {&peer.line_in, &peer.fold_in, &peer.spread_in}) *end = std::move(*receiver++);
  }
  slot_bytes = peers_.empty() ? slot_bytes : peers_.front().fold_out.ring().slot_bytes;
  table = agreed_table(group, options.transport);
  gathered_.resize(index(slot_bytes));
  folded_.resize(index(slot_bytes));
}

void Exchange::check_idle() const {
  if (running != nullptr && !broken) {
    throw BadInput("an operation on these Collectives runs; finish it first, or give each its own Collectives");
  }
}

void Exchange::start(const Operation& operation) {
  if (broken) {
    throw BadInput("these Collectives have failed and cannot be used again; make a new group and new Collectives");
  }
  broken = true;  // an exception on the way leaves it so
  running = &operation;
  if (operation.in_line) {
    start_in_line();
  } else {
    announce();
    if (operation.folds) send_contributions_ahead(slots_);
  }
  broken = false;
}

void Exchange::finish() {
  if (broken) {
    throw BadInput("these Collectives have failed and cannot be used again; make a new group and new Collectives");
  }
  broken = true;
  const Operation& operation = *running;
  if (operation.in_line) {
    finish_in_line();
  } else {
    check_announcements();
    if (operation.spreads && !operation.spreads_result) copy_own();
    const std::int64_t steps = std::max(operation.fold_chunks, operation.spread_chunks + (operation.spreads ? 1 : 0));
    for (std::int64_t number = 0; number < steps; ++number) {
      if (operation.folds) {
        for (Peer& peer : peers_) {
          const bool more = number < operation.chunks(operation.contribute[index(peer.rank)]);
          if (more && peer.contributed <= number) send_contribution(peer);
        }
        send_contributions_ahead(number + slots_);
        if (number < operation.chunks(operation.contribute[index(rank)])) fold(number);
      }
      if (!operation.spreads) continue;
      for (Peer& peer : peers_) {
        const bool more = number < operation.chunks(operation.spread[index(peer.rank)]);
        if (more && !spread_with_fold_) send_spread(peer, number);
      }
      // What the others have reduced of a chunk comes when they have seen this rank's part of it.
      for (Peer& peer : peers_) {
        if (number > 0 && number - 1 < operation.chunks(operation.gather[index(peer.rank)])) {
          receive_spread(peer, number - 1);
        }
      }
    }
  }
  ++counters.operations;
  running = nullptr;
  broken = false;
}

void Exchange::announce() {
  for (Peer& peer : peers_) {
    peer.contributed = 0;
    std::memcpy(peer.line_out.slot().data(), &running->what, sizeof running->what);
    peer.line_out.put();
  }
}

void Exchange::check_announcements() {
  for (Peer& peer : peers_) {
    Announcement theirs;
    std::memcpy(&theirs, peer.line_in.wait().data(), sizeof theirs);
    check(peer, theirs);
    peer.line_in.release();
  }
}

void Exchange::check(const Peer& peer, const Announcement& theirs) const {
  if (theirs == running->what) [[likely]]
    return;
  throw Mismatch("rank " + std::to_string(rank) + " runs " + describe(running->what) + ", but rank " +
                 std::to_string(peer.rank) + " runs " + describe(theirs) +
                 "; all ranks must run the same operations in the same order");
}

void Exchange::start_in_line() {
  const auto bytes = index(running->source_elements * running->element_bytes);
  for (Peer& peer : peers_) {
    std::byte* const line = peer.line_out.slot().data();
    std::memcpy(line, &running->what, sizeof running->what);
    std::byte* to = line + sizeof running->what;
    arrays.for_each({0, running->source_elements}, [&](const std::byte* source, std::byte*, std::int64_t length) {
      copy_bytes(to, source, index(length));
      to += length;
    });
    peer.line_out.put();
    counters.bytes_sent += static_cast<std::int64_t>(bytes);
  }
}

void Exchange::finish_in_line() {
  const Operation& operation = *running;
  for (Peer& peer : peers_) {
    const std::byte* const line = peer.line_in.wait().data();
    Announcement theirs;
    std::memcpy(&theirs, line, sizeof theirs);
    check(peer, theirs);
    sources_[index(peer.rank)] = line + sizeof theirs;
    counters.bytes_received += operation.source_elements * operation.element_bytes;
  }
  std::int64_t done = 0;
  arrays.for_each({0, operation.source_elements}, [&](const std::byte* source, std::byte* result, std::int64_t length) {
    sources_[index(rank)] = source;
    operation.fold(sources_.data(), size, result, index(length / operation.element_bytes));
    for (Peer& peer : peers_) sources_[index(peer.rank)] += length;
    done += length;
  });
  for (Peer& peer : peers_) peer.line_in.release();
}

void Exchange::send_contribution(Peer& peer) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.contribute[index(peer.rank)], peer.contributed);
  std::byte* to = peer.fold_out.slot().data();
  const std::int64_t bytes = wire_bytes(range);
  if (operation.encoded) {
    send_encoded(range, to);
  } else {
    arrays.for_each(range, [&](const std::byte* source, std::byte*, std::int64_t length) {
      store_bytes(operation.stores, to, {source, index(length)});
      to += length;
    });
  }
  peer.fold_out.publish(whole, bytes);
  peer.fold_out.advance();
  counters.bytes_sent += bytes;
  ++peer.contributed;
}

void Exchange::send_contributions_ahead(std::int64_t limit) {
  for (bool moved = true; moved;) {
    moved = false;
    for (Peer& peer : peers_) {
      const std::int64_t chunks = running->chunks(running->contribute[index(peer.rank)]);
      if (peer.contributed < std::min(chunks, limit) && peer.fold_out.ready()) {
        send_contribution(peer);
        moved = true;
      }
    }
  }
}

const std::byte* Exchange::gathered(const Range& range) {
  if (const std::byte* own = arrays.source(range); own != nullptr) return own;
  std::byte* to = gathered_.data();
  arrays.for_each(range, [&](const std::byte* source, std::byte*, std::int64_t length) {
    std::memcpy(to, source, index(length));
    to += length;
  });
  return gathered_.data();
}

void Exchange::fold(std::int64_t number) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.contribute[index(rank)], number);
  spread_with_fold_ = false;
  const std::int64_t bytes = wire_bytes(range);
  for (Peer& peer : peers_) {
    sources_[index(peer.rank)] = peer.fold_in.wait().data();
    counters.bytes_received += bytes;
  }
  const Range target{operation.folded_at + number * operation.chunk,
                     operation.folded_at + number * operation.chunk + range.elements()};
  std::byte* const result = arrays.result(target);
  std::byte* const to = result != nullptr ? result : folded_.data();
  if (operation.encoded) {
    fold_encoded(range, to);
  } else {
    sources_[index(rank)] = gathered(range);
    if ((operation.streams || operation.spreads_result) && result != nullptr) {
      fold_in_pieces(range, result);
    } else {
      operation.fold(sources_.data(), size, to, index(range.elements()));
    }
  }
  for (Peer& peer : peers_) peer.fold_in.release();
  if (result == nullptr) {
    const std::byte* from = folded_.data();
    arrays.for_each(target, [&](const std::byte*, std::byte* to, std::int64_t length) {
      std::memcpy(to, from, index(length));
      from += length;
    });
  }
}

// Folds a piece at a time in the nearest cache and stores it from there: into the result, and to the others.
void Exchange::fold_in_pieces(const Range& range, std::byte* result) {
  constexpr std::int64_t piece = 8 << 10;
  const Operation& operation = *running;
  const std::int64_t bytes = range.elements() * operation.element_bytes;
  spread_with_fold_ = operation.spreads_result;
  if (spread_with_fold_) {
    for (Peer& peer : peers_) static_cast<void>(peer.spread_out.slot());
  }
  for (std::int64_t at = 0; at < bytes; at += piece) {
    const std::int64_t length = std::min(piece, bytes - at);
    for (std::size_t r = 0; r < sources_.size(); ++r) shifted_[r] = sources_[r] + at;
    std::byte* const to = operation.streams ? folded_.data() : result + at;
    operation.fold(shifted_.data(), size, to, index(length / operation.element_bytes));
    const std::span<const std::byte> folded(to, index(length));
    if (operation.streams) store_piece(StoreKind::nontemporal, result + at, folded);
    if (!spread_with_fold_) continue;
    for (Peer& peer : peers_) store_piece(operation.stores, peer.spread_out.payload() + at, folded);
  }
  if (operation.streams) finish_pieces(StoreKind::nontemporal);
  if (spread_with_fold_) finish_spread_with_fold(bytes);
}

// The pieces that were stored into the slots of all others are a chunk.
void Exchange::finish_spread_with_fold(std::int64_t bytes) {
  finish_pieces(running->stores);
  for (Peer& peer : peers_) {
    peer.spread_out.publish(whole, bytes);
    peer.spread_out.advance();
    counters.bytes_sent += bytes;
  }
}

void Exchange::send_spread(Peer& peer, std::int64_t number) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.spread[index(peer.rank)], number);
  std::byte* to = peer.spread_out.slot().data();
  const std::int64_t bytes = wire_bytes(range);
  arrays.for_each(range, [&](const std::byte* source, const std::byte* result, std::int64_t length) {
    store_bytes(operation.stores, to, {operation.spreads_result ? result : source, index(length)});
    to += length;
  });
  peer.spread_out.publish(whole, bytes);
  peer.spread_out.advance();
  counters.bytes_sent += bytes;
}

void Exchange::receive_spread(Peer& peer, std::int64_t number) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.gather[index(peer.rank)], number);
  const std::byte* from = peer.spread_in.wait().data();
  const std::int64_t bytes = wire_bytes(range);
  std::byte* const whole = arrays.result(range);
  if (operation.encoded) {
    const auto decoded = index(range.elements() * operation.element_bytes);
    std::byte* const to = whole != nullptr ? whole : folded_.data();
    decode(operation.what.codec, operation.what.type, {from, index(bytes)}, {to, decoded});
    from = folded_.data();
  }
  if (!operation.encoded || whole == nullptr) {
    const StoreKind stores = operation.streams ? StoreKind::nontemporal : StoreKind::plain;
    arrays.for_each(range, [&](const std::byte*, std::byte* result, std::int64_t length) {
      store_bytes(stores, result, {from, index(length)});
      from += length;
    });
  }
  peer.spread_in.release();
  counters.bytes_received += bytes;
}

void Exchange::copy_own() const {
  const Range from = running->spread[index(rank)];
  const Range to = running->gather[index(rank)];
  if (to.elements() == 0) return;
  const std::byte* const source = arrays.source(from);
  std::byte* const result = arrays.result(to);
  if (source != result) std::memcpy(result, source, index(to.elements() * running->element_bytes));
}

}  // namespace onehop::tensors::detail
