#include "collectives/exchange.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "collectives/by_host.h"
#include "onehop/error.h"
#include "onehop/staging.h"
#include "src/base/clock.h"
#include "src/base/slot_policy.h"

namespace onehop::collectives::detail {

namespace {

using onehop::detail::whole;

// Paths between two ranks: the header, more lines for it, first phase, second phase.
constexpr int first_phase_tag = 1 + static_cast<int>(more_lines);
constexpr int second_phase_tag = first_phase_tag + 1;
// The store kind is chosen at run time (StoreChoice) for 4 KiB and more to each rank, for each power of two by itself.
constexpr int shortest_width = 13;
constexpr int widths = 18;
constexpr std::uint64_t timed_operations = 8;  // one of so many is timed,
constexpr int before_trial = 6;                // and each of the last ones before a trial
constexpr std::size_t all_choices = codec_count * 2 * widths;

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

double now_us() noexcept { return base::steady_seconds() * 1e6; }

// Rank 0's table for the group, because the ranks' files may differ and all ranks must make the same choice.
ReduceTable agreed_table(const Group& group, TransportKind transport) {
  bool in_memory = transport != TransportKind::mpi && transport != TransportKind::ucx;
  for (int r = 0; r < group.size(); ++r) in_memory = in_memory && group.shares_memory(r);
  const std::string mine = group.rank() == 0 ? to_json(reduce_tables()) : "";
  const Gathered all = group.allgather(std::as_bytes(std::span(mine)));
  const std::string first(reinterpret_cast<const char*>(all[0].data()), all[0].size());
  return table_for(reduce_tables_from_json(first), in_memory, group.size());
}

[[noreturn]] void throw_failed() {
  throw BadInput("these Collectives have failed and cannot be used again; make a new group and new Collectives");
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
  const base::SlotSizes sizes = base::collective_slots(size, {options.slots, options.slot_bytes});
  slots_ = sizes.slots;
  slot_bytes = sizes.slot_bytes;
  if (slots_ < 2) {  // with one slot, ranks would wait for each other to receive before they receive themselves
    throw BadInput("Collectives: expected 2 slots or more per path, found " + std::to_string(slots_));
  }
  using Direction = ChannelSpec::Direction;
  std::vector<ChannelSpec> lines;
  std::vector<ChannelSpec> phases;
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    for (const Direction direction : {Direction::send, Direction::receive}) {
      for (int tag = 0; tag < first_phase_tag; ++tag) {
        lines.push_back({.direction = direction, .peer = other, .bytes = sizeof(Line), .tag = tag});
      }
      for (const int tag : {first_phase_tag, second_phase_tag}) {
        phases.push_back({.direction = direction,
                          .peer = other,
                          .bytes = slot_bytes,
                          .tag = tag,
                          .slots = sizes.slots,
                          .slot_bytes = sizes.slot_bytes,
                          .chunk_bytes = sizes.chunk_bytes});
      }
    }
  }
  Channels short_ones = open_channels_unbacked(group, lines, options.transport);
  Channels long_ones = open_channels_unbacked(group, phases, options.transport);
  auto line_out = short_ones.senders.begin();
  auto line_in = short_ones.receivers.begin();
  auto sender = long_ones.senders.begin();
  auto receiver = long_ones.receivers.begin();
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    Peer& peer = peers_.emplace_back();
    peer.rank = other;
    peer.line_out = std::move(*line_out++);
    for (Sender& end : peer.more_out) end = std::move(*line_out++);
    for (Sender* end : {&peer.reduce_out, &peer.gather_out}) *end = std::move(*sender++);
    peer.line_in = std::move(*line_in++);
    for (Receiver& end : peer.more_in) end = std::move(*line_in++);
    for (Receiver* end : {&peer.reduce_in, &peer.gather_in}) *end = std::move(*receiver++);
  }
  slot_bytes = peers_.empty() ? slot_bytes : peers_.front().reduce_out.ring().slot_bytes;
  for (const Peer& peer : peers_) staging_bytes += back_slots(peer.line_in);
  table = agreed_table(group, options.transport);
  gathered_.resize(index(slot_bytes));
  reduced_.resize(index(slot_bytes));
  in_lines_.resize(index(size) * in_line_bytes);
  choices.resize(all_choices);
}

int Exchange::choice_for(const Operation& operation, std::int64_t bytes_to_each) const {
  const auto width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes_to_each)));
  if (operation.stores != StoreKind::nontemporal || !table.in_memory || width < shortest_width) return -1;
  const int algorithm = operation.header.algorithm == ReduceAlgorithm::one_shot ? 0 : 1;
  return (static_cast<int>(operation.header.codec) * 2 + algorithm) * widths +
         std::min(width - shortest_width, widths - 1);
}

bool Exchange::is_timed(StoreChoice& choice) {
  return ++choice.operations % timed_operations == 0 || choice.now != choice.decision.chosen() ||
         choice.decision.tries_within(before_trial);
}

void Exchange::check_idle() const {
  if (running != nullptr && !broken) {
    throw BadInput("another operation on these Collectives is running; finish it first, or use separate Collectives");
  }
}

void Exchange::start(const Operation& operation) {
  if (disagreed_) settle();
  if (broken) throw_failed();
  broken = true;  // stays so after an exception
  running = &operation;
  stores_ = operation.stores;
  gather_with_reduce_ = false;
  if (operation.lines > 0) {
    start_in_line();
  } else if (operation.by_host != nullptr) {
    send_headers();
  } else if (operation.choice < 0) {
    if (operation.reduce_chunks + operation.gather_chunks > 0) back_staging();
    send_headers();
    send_ahead();
  } else {
    back_staging();
    StoreChoice& choice = choices[index(operation.choice)];
    stores_ = choice.now;
    if (rank == 0) choice.next = choice.decision.next();
    times_ = rank == 0 && is_timed(choice);
    const double begin = times_ ? now_us() : 0;
    send_headers();
    send_ahead();
    started_us_ = times_ ? now_us() - begin : 0;
  }
  broken = false;
}

void Exchange::finish() {
  if (broken) throw_failed();
  broken = true;
  const Operation& operation = *running;
  if (operation.lines > 0) {
    finish_in_line();
  } else if (operation.by_host != nullptr) {
    check_headers();
    run_by_host();
  } else {
    check_headers();
    // Excludes the wait for the headers of all ranks.
    const bool times = operation.choice >= 0 && times_;
    const double begin = times ? now_us() : 0;
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
        if (more && !gather_with_reduce_ && !(number == 0 && peer.sent_block)) send_gather(peer, number);
      }
      // A peer sends its result of a chunk only after it has this rank's contribution to the chunk.
      for (Peer& peer : peers_) {
        if (number > 0 && number - 1 < operation.chunks(operation.gather_receive[index(peer.rank)])) {
          receive_gather(peer, number - 1);
        }
      }
    }
    if (operation.choice >= 0) choose_stores(times ? started_us_ + now_us() - begin : 0);
  }
  ++counters.operations;
  running = nullptr;
  broken = false;
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

// Sends what needs no data of other ranks, as far as slots are free, so that a short operation takes one way only.
void Exchange::send_ahead() {
  const Operation& operation = *running;
  if (operation.reduces) return send_contributions_ahead(slots_);
  if (!operation.gathers) return;
  for (Peer& peer : peers_) {
    peer.sent_block = operation.chunks(operation.gather_send[index(peer.rank)]) > 0 && peer.gather_out.ready();
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
  std::byte* to = gathered_.data();
  arrays.for_each(range, [&](const std::byte* source, std::byte*, std::int64_t length) {
    std::memcpy(to, source, index(length));
    to += length;
  });
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
    if ((operation.streams || operation.gathers_result) && result != nullptr) {
      reduce_in_pieces(range, result);
    } else {
      operation.reduce(sources_.data(), size, to, index(range.elements()));
    }
  }
  for (Peer& peer : peers_) peer.reduce_in.release();
  if (result == nullptr) {
    const std::byte* from = reduced_.data();
    arrays.for_each(target, [&](const std::byte*, std::byte* to, std::int64_t length) {
      std::memcpy(to, from, index(length));
      from += length;
    });
  }
}

// Reduces one piece after the other in the first-level cache, and stores each from there into the result and to peers.
void Exchange::reduce_in_pieces(const Range& range, std::byte* result) {
  constexpr std::int64_t piece = 8 << 10;
  const Operation& operation = *running;
  const std::int64_t bytes = range.elements() * operation.element_bytes;
  gather_with_reduce_ = operation.gathers_result;
  if (gather_with_reduce_) {
    for (Peer& peer : peers_) static_cast<void>(peer.gather_out.slot());
  }
  for (std::int64_t at = 0; at < bytes; at += piece) {
    const std::int64_t length = std::min(piece, bytes - at);
    for (std::size_t r = 0; r < sources_.size(); ++r) shifted_[r] = sources_[r] + at;
    std::byte* const to = operation.streams ? reduced_.data() : result + at;
    operation.reduce(shifted_.data(), size, to, index(length / operation.element_bytes));
    const std::span<const std::byte> reduced(to, index(length));
    if (operation.streams) store_piece(StoreKind::nontemporal, result + at, reduced);
    if (!gather_with_reduce_) continue;
    for (Peer& peer : peers_) store_piece(stores_, peer.gather_out.payload() + at, reduced);
  }
  if (operation.streams) finish_pieces(StoreKind::nontemporal);
  if (gather_with_reduce_) finish_gather_with_reduce(bytes);
}

// Publishes the chunk whose pieces have been stored into the slots of all peers.
void Exchange::finish_gather_with_reduce(std::int64_t bytes) {
  finish_pieces(stores_);
  for (Peer& peer : peers_) {
    peer.gather_out.publish(whole, bytes);
    peer.gather_out.advance();
    counters.bytes_sent += bytes;
  }
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
  const std::int64_t bytes = wire_bytes(range);
  std::byte* const whole = arrays.result(range);
  if (operation.encoded) {
    const auto decoded = index(range.elements() * operation.element_bytes);
    std::byte* const to = whole != nullptr ? whole : reduced_.data();
    decode(operation.header.codec, operation.header.type, {from, index(bytes)}, {to, decoded});
    from = reduced_.data();
  }
  if (!operation.encoded || whole == nullptr) {
    const StoreKind stores = operation.streams ? StoreKind::nontemporal : StoreKind::plain;
    arrays.for_each(range, [&](const std::byte*, std::byte* result, std::int64_t length) {
      store_bytes(stores, result, {from, index(length)});
      from += length;
    });
  }
  peer.gather_in.release();
  counters.bytes_received += bytes;
}

// After the headers have shown that all ranks run this operation.
void Exchange::run_by_host() {
  const Range all{0, running->source_elements};
  const std::byte* const source = arrays.source(all);
  std::byte* const result = arrays.result(all);
  const CollectivesCounters before = hosts->counters();
  if (source != nullptr && result != nullptr) {
    running->by_host->run(source, result);
  } else {
    // Several arrays take turns in each block, so they are brought together first.
    std::vector<std::byte> together(index(all.elements() * running->element_bytes));
    std::byte* to = together.data();
    arrays.for_each(all, [&](const std::byte* from, std::byte*, std::int64_t length) {
      std::memcpy(to, from, index(length));
      to += length;
    });
    running->by_host->run(together.data(), together.data());
    const std::byte* from = together.data();
    arrays.for_each(all, [&](const std::byte*, std::byte* part, std::int64_t length) {
      std::memcpy(part, from, index(length));
      from += length;
    });
  }
  const CollectivesCounters after = hosts->counters();
  counters.bytes_sent += after.bytes_sent - before.bytes_sent;
  counters.bytes_received += after.bytes_received - before.bytes_received;
}

void Exchange::copy_own() const {
  const Range from = running->gather_send[index(rank)];
  const Range to = running->gather_receive[index(rank)];
  if (to.elements() == 0) return;
  const std::byte* const source = arrays.source(from);
  std::byte* const result = arrays.result(to);
  if (source != result) std::memcpy(result, source, index(to.elements() * running->element_bytes));
}

}  // namespace onehop::collectives::detail
