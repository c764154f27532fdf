// The two phases of an operation, chunk by chunk; with a codec, exchange_codec.cc has the loops.
#include <algorithm>

#include "collectives/exchange.h"
#include "src/channel/store.h"

namespace onehop::collectives::detail {

using onehop::detail::whole;

namespace {

// Where chunk `number` lies in the area of a rank. Chunks are a line more than a slot apart, since the first lines of
// all would compete for one place in a cache.
std::size_t area_offset(std::uint64_t number, std::int64_t slots, std::int64_t slot_bytes) {
  return index(static_cast<std::int64_t>(number % index(slots)) * (slot_bytes + area_gap));
}

}  // namespace

void Exchange::run_phases() {
  const Operation& operation = *running;
  if (operation.gathers && !operation.gathers_result) copy_own();
  const std::int64_t steps = std::max(operation.reduce_chunks, operation.gather_chunks + (operation.gathers ? 1 : 0));
  for (std::int64_t number = 0; number < steps; ++number) {
    if (operation.reduces) {
      for (Peer& peer : peers_) {
        const bool more = number < operation.chunks(operation.contribute[index(peer.rank)]);
        if (more && peer.contributed <= number) send_contribution(peer);
      }
      send_contributions_ahead(number + slots_);
      if (number < operation.chunks(operation.contribute[index(rank)])) reduce(number);
    }
    if (!operation.gathers) continue;
    for (Peer& peer : peers_) {
      const bool more = number < operation.chunks(operation.gather_send[index(peer.rank)]);
      if (!more || gather_with_reduce_ || (number == 0 && peer.sent_block)) continue;
      if (operation.shares) {
        share(number);
        break;
      }
      send_gather(peer, number);
    }
    // A peer sends its result of a chunk only after it has this rank's contribution to the chunk.
    for (Peer& peer : peers_) {
      if (number > 0 && number - 1 < operation.chunks(operation.gather_receive[index(peer.rank)])) {
        receive_gather(peer, number - 1);
      }
    }
  }
}

void Exchange::send_contribution(Peer& peer) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.contribute[index(peer.rank)], peer.contributed);
  std::byte* to = peer.reduce_out.slot().data();
  const std::int64_t bytes = wire_bytes(range);
  if (operation.encoded) {
    send_encoded(range, to);
  } else {
    arrays.for_each(range, [&](const std::byte* source, std::byte*, std::int64_t length) {
      store_bytes(stores_, to, {source, index(length)});
      to += length;
    });
  }
  peer.reduce_out.publish(whole, bytes);
  peer.reduce_out.advance();
  counters.bytes_sent += bytes;
  ++peer.contributed;
}

void Exchange::send_ahead() {
  if (!all_backed_) return;  // a peer may not have the memory yet; the first long operation finds out
  const Operation& operation = *running;
  if (operation.reduces) return send_contributions_ahead(slots_);
  if (!operation.gathers) return;
  const auto sends_to = [&](Peer& peer) {
    return operation.chunks(operation.gather_send[index(peer.rank)]) > 0 && peer.gather_out.ready();
  };
  if (operation.shares) {
    if (!std::ranges::all_of(peers_, sends_to)) return;
    for (Peer& peer : peers_) peer.sent_block = true;
    return share(0);
  }
  for (Peer& peer : peers_) {
    peer.sent_block = sends_to(peer);
    if (peer.sent_block) send_gather(peer, 0);
  }
}

void Exchange::send_contributions_ahead(std::int64_t limit) {
  for (bool moved = true; moved;) {
    moved = false;
    for (Peer& peer : peers_) {
      const std::int64_t chunks = running->chunks(running->contribute[index(peer.rank)]);
      if (peer.contributed < std::min(chunks, limit) && peer.reduce_out.ready()) {
        send_contribution(peer);
        moved = true;
      }
    }
  }
}

const std::byte* Exchange::gathered(const Range& range) {
  if (const std::byte* own = arrays.source(range); own != nullptr) return own;
  arrays.collect(range, gathered_.data());
  return gathered_.data();
}

void Exchange::reduce(std::int64_t number) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.contribute[index(rank)], number);
  gather_with_reduce_ = false;
  const std::int64_t bytes = wire_bytes(range);
  for (Peer& peer : peers_) {
    sources_[index(peer.rank)] = peer.reduce_in.wait().data();
    counters.bytes_received += bytes;
  }
  const Range target{operation.reduced_at + number * operation.chunk,
                     operation.reduced_at + number * operation.chunk + range.elements()};
  std::byte* const result = arrays.result(target);
  std::byte* const to = result != nullptr ? result : reduced_.data();
  if (operation.encoded) {
    reduce_encoded(range, to);
  } else {
    sources_[index(rank)] = gathered(range);
    if ((streams_ || operation.gathers_result) && result != nullptr) {
      reduce_in_pieces(range, result);
    } else {
      operation.reduce(sources_.data(), size, to, index(range.elements()));
    }
  }
  for (Peer& peer : peers_) peer.reduce_in.release();
  if (result == nullptr) arrays.distribute(target, reduced_.data());
}

// Reduces one piece after the other in the first-level cache, and stores each from there into the result and to peers.
void Exchange::reduce_in_pieces(const Range& range, std::byte* result) {
  constexpr std::int64_t piece = 8 << 10;
  const Operation& operation = *running;
  const std::int64_t bytes = range.elements() * operation.element_bytes;
  gather_with_reduce_ = operation.gathers_result;
  if (gather_with_reduce_) open_gather();
  for (std::int64_t at = 0; at < bytes; at += piece) {
    const std::int64_t length = std::min(piece, bytes - at);
    for (std::size_t r = 0; r < sources_.size(); ++r) shifted_[r] = sources_[r] + at;
    std::byte* const to = streams_ ? reduced_.data() : result + at;
    operation.reduce(shifted_.data(), size, to, index(length / operation.element_bytes));
    const std::span<const std::byte> reduced(to, index(length));
    if (streams_) store_piece(StoreKind::nontemporal, result + at, reduced);
    if (!gather_with_reduce_) continue;
    for (std::byte* const to_peers : gather_to_) store_piece(stores_, to_peers + at, reduced);
  }
  if (streams_) finish_pieces(StoreKind::nontemporal);
  if (gather_with_reduce_) publish_gather(bytes);
}

void Exchange::open_gather() {
  gather_to_.clear();
  for (Peer& peer : peers_) gather_to_.push_back(peer.gather_out.slot().data());
  if (running->shares) gather_to_.assign(1, areas_.own() + area_offset(shared_++, slots_, slot_bytes));
}

void Exchange::publish_gather(std::int64_t bytes) {
  finish_pieces(stores_);
  for (Peer& peer : peers_) {
    peer.gather_out.publish(whole, bytes);
    peer.gather_out.advance();
    counters.bytes_sent += bytes;
  }
}

void Exchange::share(std::int64_t number) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.gather_send[index(peers_.front().rank)], number);
  open_gather();
  std::byte* to = gather_to_.front();
  arrays.for_each(range, [&](const std::byte* source, const std::byte* result, std::int64_t length) {
    store_piece(stores_, to, {operation.gathers_result ? result : source, index(length)});
    to += length;
  });
  publish_gather(wire_bytes(range));
}

void Exchange::send_gather(Peer& peer, std::int64_t number) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.gather_send[index(peer.rank)], number);
  std::byte* to = peer.gather_out.slot().data();
  const std::int64_t bytes = wire_bytes(range);
  arrays.for_each(range, [&](const std::byte* source, const std::byte* result, std::int64_t length) {
    store_bytes(stores_, to, {operation.gathers_result ? result : source, index(length)});
    to += length;
  });
  peer.gather_out.publish(whole, bytes);
  peer.gather_out.advance();
  counters.bytes_sent += bytes;
}

void Exchange::receive_gather(Peer& peer, std::int64_t number) {
  const Operation& operation = *running;
  const Range range = operation.part(operation.gather_receive[index(peer.rank)], number);
  const std::byte* from = peer.gather_in.wait().data();
  if (operation.shares) {
    const auto& theirs = peer.gather_in.ring();  // as the sender has it
    from = areas_.of(peer.rank) + area_offset(peer.shared++, theirs.slots, theirs.slot_bytes);
  }
  const std::int64_t bytes = wire_bytes(range);
  std::byte* const whole = arrays.result(range);
  if (operation.encoded) {
    const auto decoded = index(range.elements() * operation.element_bytes);
    std::byte* const to = whole != nullptr ? whole : reduced_.data();
    decode(operation.header.codec, operation.header.type, {from, index(bytes)}, {to, decoded});
    from = reduced_.data();
  }
  if (!operation.encoded || whole == nullptr) {
    const StoreKind stores = streams_ ? StoreKind::nontemporal : StoreKind::plain;
    arrays.for_each(range, [&](const std::byte*, std::byte* result, std::int64_t length) {
      store_bytes(stores, result, {from, index(length)});
      from += length;
    });
  }
  peer.gather_in.release();
  counters.bytes_received += bytes;
}

void Exchange::copy_own() const {
  const Range from = running->gather_send[index(rank)];
  const Range to = running->gather_receive[index(rank)];
  if (to.elements() == 0) return;
  const std::byte* const source = arrays.source(from);
  std::byte* const result = arrays.result(to);
  if (source == result) return;
  const StoreKind stores = streams_ ? StoreKind::nontemporal : StoreKind::plain;
  store_bytes(stores, result, {source, index(to.elements() * running->element_bytes)});
}

}  // namespace onehop::collectives::detail
