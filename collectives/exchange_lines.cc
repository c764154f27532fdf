// The headers that begin every operation, and contributions so short that they are sent with them.
#include <algorithm>
#include <cstring>
#include <string>

#include "collectives/exchange.h"
#include "collectives/relay.h"
#include "onehop/error.h"
#include "src/channel/staging.h"

namespace onehop::collectives::detail {

namespace {

using onehop::detail::copy_bytes;

// The byte between a header and the lengths of blocks.
constexpr std::byte hint_given{0x80};
static_assert(sizeof(Header) < lengths_at);

// How a rank has sent its block of an abandoned operation, in the field `shape` of Header::Kind::settling; 0: not yet.
constexpr std::uint64_t own_block = 1;
constexpr std::uint64_t shared_block = 2;

// Publishes a first line that was written into the slot. Over a network, only so many bytes behind the header are sent.
void put_line(Sender& line, std::size_t payload_bytes = Line::payload_bytes) {
  line.publish(onehop::detail::whole, static_cast<std::int64_t>(sizeof(Header) + payload_bytes));
  line.advance();
}

}  // namespace

void Exchange::back_staging() {
  if (backed_ || peers_.empty()) return;
  try {
    for (const Peer& peer : peers_) staging_bytes += peer.reduce_in.back_slots();
    if (areas_.exist()) staging_bytes += areas_.back();
  } catch (const Error&) {
    if (relay != nullptr) {
      relay->refuse(*running);
      throw;
    }
    for (Peer& peer : peers_) {
      const Header refused{.kind = Header::Kind::refused};
      std::memcpy(peer.line_out.slot().data(), &refused, sizeof refused);
      put_line(peer.line_out);
    }
    throw;
  }
  backed_ = true;
}

void Exchange::send_headers() {
  for (Peer& peer : peers_) {
    peer.contributed = 0;
    peer.sent_block = false;
    if (relay != nullptr) continue;
    std::byte* const line = peer.line_out.slot().data();
    std::memcpy(line, &running->header, sizeof running->header);
    hint(line + sizeof running->header);
    if (running->compares_lengths) write_lengths(line, peer.rank);
    if (running->may_share) std::memcpy(line + lengths_at, &places_, sizeof places_);
    put_line(peer.line_out);
  }
  if (relay != nullptr) relay->start(*running, nullptr);
}

void Exchange::look_ahead() noexcept {
  // With one peer and one line there is nothing to await at the same time. Polling the data behind the header, too,
  // takes its line away from the sender before that has written it: 512 bytes took 0.124 instead of 0.111 µs.
  if (peers_.size() == 1 && running->lines <= 1) return;
  constexpr int max_polls = 64;
  const auto more = index(std::max(running->lines - 1, 0));
  for (int polls = 0; polls < max_polls; ++polls) {
    bool all = true;
    for (const Peer& peer : peers_) {
      bool arrived = peer.line_in.ready();
      for (std::size_t i = 0; i < more; ++i) arrived = arrived & peer.more_in[i].ready();
      if (running->lines == 0 && running->reduce_chunks > 0) arrived = arrived & peer.reduce_in.ready();
      all = all & arrived;
    }
    if (all) return;
  }
}

void Exchange::check_headers() {
  if (relay != nullptr) return check(relay->finish(nullptr));
  look_ahead();
  checked_ = 0;
  std::uint64_t sum = running->lengths_sum;
  std::string difference;
  for (Peer& peer : peers_) {
    Header theirs;
    const std::byte* const line = peer.line_in.wait().data();
    std::memcpy(&theirs, line, sizeof theirs);
    check(peer.rank, theirs);
    if (peer.rank == 0) take_hint(line[sizeof theirs]);
    if (running->may_share) take_places(peer.rank, line);
    if (running->compares_lengths) {
      BlockLengths lengths;
      std::memcpy(&lengths, line + lengths_at, sizeof lengths);
      sum += lengths.sum;
      if (difference.empty()) difference = difference_of(lengths, peer.rank);
    }
    peer.line_in.release();
    ++checked_;
  }
  if (sum != 0) disagree_about_lengths(difference);
  if (running->uses_slots) all_backed_ = true;
}

void Exchange::write_lengths(std::byte* line, int peer) const {
  const BlockLengths lengths{running->lengths_sum, running->gather_send[index(peer)].elements(),
                             running->gather_receive[index(peer)].elements()};
  std::memcpy(line + lengths_at, &lengths, sizeof lengths);
}

std::string Exchange::difference_of(const BlockLengths& theirs, int peer) const {
  const std::int64_t to = running->gather_send[index(peer)].elements();
  const std::int64_t from = running->gather_receive[index(peer)].elements();
  if (theirs.from_you == to && theirs.to_you == from) return "";
  const std::string me = "rank " + std::to_string(rank);
  const std::string other = "rank " + std::to_string(peer);
  const bool sends = theirs.from_you != to;
  return (sends ? me : other) + " sends " + std::to_string(sends ? to : theirs.to_you) + " bytes to " +
         (sends ? other : me) + ", which expects " + std::to_string(sends ? theirs.from_you : from);
}

// Writes the store kind of the next operation of this kind behind the header. Only rank 0's is read.
void Exchange::hint(std::byte* line) const {
  *line = choice_ < 0 ? std::byte{0} : std::byte{static_cast<unsigned char>(choices[index(choice_)].next)} | hint_given;
}

void Exchange::take_hint(std::byte hint) {
  if (choice_ < 0 || (hint & hint_given) == std::byte{0}) return;
  choices[index(choice_)].next = static_cast<StoreKind>(hint & ~hint_given);
}

// Adopts the store kind of the next operation of this kind; rank 0 also records the time of this one, if it took it.
void Exchange::choose_stores(double us) {
  StoreChoice& choice = choices[index(choice_)];
  if (times_) choice.decision.took(choice.now, us);
  choice.now = choice.next;
}

void Exchange::throw_unequal(int peer, const Header& theirs) {
  if (theirs.kind == Header::Kind::refused) {
    throw Error("rank " + std::to_string(rank) + " runs " + describe(running->header, running->header) + ", but rank " +
                std::to_string(peer) +
                " has not enough memory for the slots of its paths (its own error says how much is missing)");
  }
  disagree("rank " + std::to_string(rank) + " runs " + describe(running->header, theirs) + ", but rank " +
           std::to_string(peer) + " runs " + describe(theirs, running->header));
}

void Exchange::disagree(const std::string& what) {
  disagreed_ = true;
  disagreed_lines_ = running->lines;
  abandoned_shares_ = running->shares;
  running = nullptr;
  throw Mismatch(what +
                 "; all ranks must run the same operations in the same order. Nothing was combined, and the next "
                 "operation that is the same on all ranks works again");
}

void Exchange::disagree_about_lengths(const std::string& difference) {
  const std::string what = describe(running->header, running->header) + " in which ";
  disagree(difference.empty() ? what + "other ranks disagree about the length of a block; see their errors"
                              : what + difference);
}

// If one rank found a difference, all did, and all call this when they start the next operation. Only data sent by
// start() is on its way: all other data follows the comparison.
void Exchange::settle() {
  disagreed_ = false;  // an exception from here on leaves the Collectives broken
  const bool in_lines = disagreed_lines_ > 0;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (i < checked_ && !in_lines) continue;
    static_cast<void>(peers_[i].line_in.wait());
    peers_[i].line_in.release();
  }
  for (Peer& peer : peers_) {
    const Header sent{.kind = Header::Kind::settling,
                      .root = static_cast<std::uint16_t>(in_lines ? disagreed_lines_ - 1 : 0),
                      .elements = in_lines ? 0 : peer.contributed,
                      .shape = in_lines || !peer.sent_block ? 0U
                               : abandoned_shares_          ? shared_block
                                                            : own_block};
    std::memcpy(peer.line_out.slot().data(), &sent, sizeof sent);
    put_line(peer.line_out);
  }
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    Header sent;
    std::memcpy(&sent, peer.line_in.wait().data(), sizeof sent);
    peer.line_in.release();
    for (std::int64_t chunk = 0; chunk < sent.elements; ++chunk) {
      static_cast<void>(peer.reduce_in.wait());
      peer.reduce_in.release();
    }
    if (sent.shape != 0) {
      static_cast<void>(peer.gather_in.wait());
      peer.gather_in.release();
      if (sent.shape == shared_block) ++peer.shared;
    }
    if (i < checked_) continue;  // it ran the same operation, and its lines have been received
    for (std::size_t line = 0; line < sent.root; ++line) {
      static_cast<void>(peer.more_in[line].wait());
      peer.more_in[line].release();
    }
  }
  broken = false;
}

void Exchange::start_in_line() {
  const auto bytes = index(running->source_bytes());
  const Range all{0, running->source_elements};
  const std::byte* source = arrays.source(all);
  if (source == nullptr) [[unlikely]]
    source = gathered(all);
  const std::size_t first = std::min(bytes, first_line_bytes);
  for (Peer& peer : peers_) {
    std::byte* const line = peer.line_out.slot().data();
    std::memcpy(line, &running->header, sizeof running->header);
    copy_bytes(line + sizeof running->header, source, first);
    put_line(peer.line_out, std::max(first, Line::payload_bytes));
    std::size_t at = first;
    for (std::size_t i = 0; at < bytes; ++i, at += more_bytes) {
      copy_bytes(peer.more_out[i].slot().data(), source + at, std::min(bytes - at, more_bytes));
      peer.more_out[i].put();
    }
    counters.bytes_sent += static_cast<std::int64_t>(bytes);
  }
}

// Waits for the other lines of a contribution and returns the address of the whole.
const std::byte* Exchange::received_in_lines(Peer& peer, const std::byte* payload, std::size_t bytes) {
  std::byte* const whole = in_lines_.data() + index(peer.rank) * most_line_bytes;
  std::memcpy(whole, payload, Line::payload_bytes);
  std::size_t at = Line::payload_bytes;
  for (std::size_t i = 0; at < bytes; ++i, at += more_bytes) {
    std::memcpy(whole + at, peer.more_in[i].wait().data(), more_bytes);
    peer.more_in[i].release();
  }
  return whole;
}

void Exchange::finish_in_line() {
  const Operation& operation = *running;
  const std::int64_t bytes = operation.source_bytes();
  look_ahead();
  checked_ = 0;
  for (Peer& peer : peers_) {
    const std::byte* const line = peer.line_in.wait().data();
    Header theirs;
    std::memcpy(&theirs, line, sizeof theirs);
    check(peer.rank, theirs);
    const std::byte* const payload = line + sizeof theirs;
    sources_[index(peer.rank)] = operation.lines == 1 ? payload : received_in_lines(peer, payload, index(bytes));
    counters.bytes_received += bytes;
    ++checked_;
  }
  const Range all{0, operation.source_elements};
  const std::byte* const own = arrays.source(all);
  std::byte* const whole = arrays.result(all);
  if (own != nullptr && whole != nullptr) [[likely]] {
    sources_[index(rank)] = own;
    operation.reduce(sources_.data(), size, whole, index(operation.source_elements));
  } else {
    arrays.for_each(all, [&](const std::byte* source, std::byte* result, std::int64_t length) {
      sources_[index(rank)] = source;
      operation.reduce(sources_.data(), size, result, index(length / operation.element_bytes));
      for (Peer& peer : peers_) sources_[index(peer.rank)] += length;
    });
  }
  for (Peer& peer : peers_) peer.line_in.release();
}

}  // namespace onehop::collectives::detail
