#include "collectives/shared_arrays.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "collectives/exchange.h"
#include "onehop/error.h"
#include "src/channel/store.h"

namespace onehop::collectives::detail {

namespace {

// Shorter arrays gain less than the search for their memory takes.
constexpr std::int64_t shortest_shared = 32 << 10;
// Memory that is kept mapped stays in use after its rank has freed it, so it is limited for each rank: to so many
// bytes, or the memory of one operation if that is more.
constexpr std::int64_t most_kept_bytes = 256 << 20;
constexpr std::size_t most_kept = 16;

constexpr std::int64_t offset_limit = std::int64_t{1} << 48U;
constexpr std::int32_t descriptor_limit = 1 << 16;

bool fits(const SharedPlace& place) {
  return place.memory != 0 && place.descriptor >= 0 && place.descriptor < descriptor_limit && place.offset >= 0 &&
         place.offset < offset_limit;
}

}  // namespace

PlacesOnWire::PlacesOnWire(const SharedPlace& source, const SharedPlace& result) {
  if (!fits(source) || !fits(result)) return;
  std::size_t at = 0;
  for (const SharedPlace* place : {&source, &result}) {
    const auto offset = static_cast<std::uint64_t>(place->offset);
    words_[at++] = place->memory;
    words_[at++] = static_cast<std::uint32_t>(offset);
    words_[at++] = static_cast<std::uint32_t>(offset >> 32U << 16U) | static_cast<std::uint32_t>(place->descriptor);
  }
}

SharedPlace PlacesOnWire::place(std::size_t first) const noexcept {
  const std::uint32_t last = words_[first + 2];
  return {words_[first], static_cast<std::int32_t>(last & 0xffffU),
          static_cast<std::int64_t>(std::uint64_t{last >> 16U} << 32U | words_[first + 1])};
}

std::byte* MappedArrays::at(const Group& group, int rank, const SharedPlace& place, std::int64_t bytes) {
  std::deque<Known>& known = of_rank_[index(rank)];
  auto found = std::ranges::find(known, place.memory, &Known::memory);
  if (found == known.end()) {
    known.push_front({place.memory, map_memory(group, rank, place)});
    std::int64_t kept = 0;
    std::size_t keep = 0;
    for (; keep < std::min(known.size(), most_kept); ++keep) {
      kept += known[keep].mapped.bytes;
      if (keep >= 2 && kept > most_kept_bytes) break;  // an operation uses two at most
    }
    known.resize(keep);
  } else if (found != known.begin()) {
    std::rotate(known.begin(), found, found + 1);
  }
  const MappedMemory& memory = known.front().mapped;
  if (place.offset > memory.bytes - bytes) {
    throw Error("an array of rank " + std::to_string(rank) +
                " does not lie in the memory that the rank names; do all ranks run the same version of onehop?");
  }
  return memory.begin.get() + place.offset;
}

// Whether the arrays of the operation, which starts, lie in shared memory. Then no data is sent ahead, because the
// other ranks' arrays probably do, too.
void Exchange::find_places() {
  places_ = {};
  all_share_ = false;
  const Operation& operation = *running;
  const std::int64_t bytes = operation.source_bytes();
  if (!operation.may_share || bytes < shortest_shared) return;
  const Range all{0, operation.source_elements};
  const std::byte* const source = arrays.source(all);
  const std::byte* const result = arrays.result(all);
  if (source == nullptr || result == nullptr) return;
  const SharedPlace from = own_places_.of({source, index(bytes)});
  if (from.memory == 0) return;
  places_ = {from, source == result ? from : own_places_.of({result, index(bytes)})};
  all_share_ = places_.given();
  in_place_ = source == result;
}

// Notes what the header of another rank says.
void Exchange::take_places(int peer, const std::byte* line) {
  PlacesOnWire& theirs = places_of_[index(peer)];
  std::memcpy(&theirs, line + lengths_at, sizeof theirs);
  all_share_ = all_share_ && theirs.given();
}

// In place of both phases. The other ranks' headers have said that their sources are complete and that their results
// may be written; the messages at the end say that nobody reads or writes the arrays of this rank any more.
void Exchange::run_shared() {
  const Operation& operation = *running;
  const Range all{0, operation.source_elements};
  const std::int64_t total = operation.source_bytes();
  const Range range = operation.contribute[index(rank)];
  const std::int64_t begin = range.first * operation.element_bytes;
  const std::int64_t bytes = range.elements() * operation.element_bytes;
  sources_[index(rank)] = arrays.source(all) + begin;
  for (const Peer& peer : peers_) {
    const PlacesOnWire& theirs = places_of_[index(peer.rank)];
    sources_[index(peer.rank)] = mapped_.at(group, peer.rank, theirs.source(), total) + begin;
    results_[index(peer.rank)] = mapped_.at(group, peer.rank, theirs.result(), total) + begin;
  }
  constexpr std::int64_t piece = 8 << 10;
  std::byte* const result = arrays.result(all) + begin;
  const bool streams = operation.streams && !in_place_;
  for (std::int64_t at = 0; at < bytes; at += piece) {
    const std::int64_t length = std::min(piece, bytes - at);
    for (std::size_t r = 0; r < sources_.size(); ++r) shifted_[r] = sources_[r] + at;
    std::byte* const to = streams ? reduced_.data() : result + at;
    operation.reduce(shifted_.data(), size, to, index(length / operation.element_bytes));
    const std::span<const std::byte> reduced(to, index(length));
    if (streams) store_piece(StoreKind::nontemporal, result + at, reduced);
    for (const Peer& peer : peers_) store_piece(stores_, results_[index(peer.rank)] + at, reduced);
  }
  if (streams) finish_pieces(StoreKind::nontemporal);
  finish_pieces(stores_);
  for (Peer& peer : peers_) {
    static_cast<void>(peer.gather_out.slot());
    peer.gather_out.publish(onehop::detail::whole, 0);
    peer.gather_out.advance();
    const Range theirs = operation.contribute[index(peer.rank)];
    counters.bytes_sent += bytes + theirs.elements() * operation.element_bytes;
  }
  for (Peer& peer : peers_) {
    static_cast<void>(peer.gather_in.wait());
    peer.gather_in.release();
    const Range theirs = operation.contribute[index(peer.rank)];
    counters.bytes_received += bytes + theirs.elements() * operation.element_bytes;
  }
}

}  // namespace onehop::collectives::detail
