// Operations that the relay executes, those that go by host, and the comparison of headers through the relay.
#include <algorithm>
#include <cstring>
#include <string>

#include "collectives/by_host.h"
#include "collectives/exchange.h"
#include "collectives/relay.h"

namespace onehop::collectives::detail {

const std::byte* Exchange::whole_source() {
  const Range all{0, running->source_elements};
  if (const std::byte* const source = arrays.source(all); source != nullptr) return source;
  together_.resize(index(running->source_bytes()));
  arrays.collect(all, together_.data());
  return together_.data();
}

// Calls make(result), with the memory of the result in one piece.
template <class Make>
void Exchange::make_whole_result(const Make& make) {
  const Range all{0, running->source_elements};
  std::byte* const result = arrays.result(all);
  if (result != nullptr) return make(result);
  together_.resize(index(running->source_bytes()));
  make(together_.data());
  arrays.distribute(all, together_.data());
}

void Exchange::start_relayed() {
  for (Peer& peer : peers_) {
    peer.contributed = 0;
    peer.sent_block = false;
  }
  relay->start(*running, whole_source());
}

void Exchange::finish_relayed() {
  make_whole_result([&](std::byte* result) { check(relay->finish(result)); });
  counters.bytes_sent += relay->bytes_sent();
  counters.bytes_received += relay->bytes_received();
}

void Exchange::finish_by_host() {
  check_headers();
  const CollectivesCounters before = hosts->counters();
  const std::byte* const source = whole_source();
  make_whole_result([&](std::byte* result) { running->by_host(source, result); });
  together_ = {};  // it may be long
  const CollectivesCounters after = hosts->counters();
  counters.bytes_sent += after.bytes_sent - before.bytes_sent;
  counters.bytes_received += after.bytes_received - before.bytes_received;
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
