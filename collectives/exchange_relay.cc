// The beginning of operations in groups with a relay, and those that it executes.
#include <algorithm>
#include <cstring>
#include <string>

#include "collectives/exchange.h"
#include "collectives/relay.h"

namespace onehop::collectives::detail {

void Exchange::start_relayed() {
  const Operation& operation = *running;
  for (Peer& peer : peers_) {
    peer.contributed = 0;
    peer.sent_block = false;
  }
  if (operation.relayed == Relayed::nothing) {
    if (operation.uses_slots) back_staging();
    relay->start(operation, nullptr);
    if (operation.by_host == nullptr) send_ahead();
    return;
  }
  const Range all{0, operation.source_elements};
  const std::byte* source = arrays.source(all);
  if (source == nullptr) {
    relayed_.resize(index(operation.source_bytes()));
    std::byte* to = relayed_.data();
    arrays.for_each(all, [&](const std::byte* part, std::byte*, std::int64_t length) {
      std::memcpy(to, part, index(length));
      to += length;
    });
    source = relayed_.data();
  }
  relay->start(operation, source);
}

void Exchange::finish_relayed() {
  const Range all{0, running->source_elements};
  std::byte* const result = arrays.result(all);
  if (result == nullptr) relayed_.resize(index(running->source_bytes()));
  check(relay->finish(result != nullptr ? result : relayed_.data()));
  if (result == nullptr) {
    const std::byte* from = relayed_.data();
    arrays.for_each(all, [&](const std::byte*, std::byte* part, std::int64_t length) {
      std::memcpy(part, from, index(length));
      from += length;
    });
  }
  counters.bytes_sent += relay->bytes_sent();
  counters.bytes_received += relay->bytes_received();
}

void Exchange::check(const Summary& all) {
  checked_ = peers_.size();
  if (!all.all_equal()) {
    const bool other_differs = !(all.other == running->header);
    check(other_differs ? all.other_rank : all.rank, other_differs ? all.other : all.header);
  }
  // All ranks have the same sum, so all of them look for the reason.
  if (all.lengths_sum != 0) disagree_about_lengths(find_difference());
  if (running->uses_slots) all_backed_ = true;
}

// Every rank tells every other one the lengths of the blocks between them.
std::string Exchange::find_difference() {
  for (Peer& peer : peers_) {
    std::byte* const line = peer.line_out.slot().data();
    write_lengths(line, peer.rank);
    peer.line_out.publish(onehop::detail::whole, static_cast<std::int64_t>(sizeof(Line)));
    peer.line_out.advance();
  }
  std::string difference;
  for (Peer& peer : peers_) {
    BlockLengths lengths;
    std::memcpy(&lengths, peer.line_in.wait().data() + lengths_at, sizeof lengths);
    peer.line_in.release();
    if (difference.empty()) difference = difference_of(lengths, peer.rank);
  }
  return difference;
}

}  // namespace onehop::collectives::detail
