#include "src/plan/plan_dependencies.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <tuple>

#include "onehop/error.h"
#include "src/base/text.h"
#include "src/channel/transport/transport.h"

namespace onehop::detail {
namespace {

// Whether both messages list the same slices in the same order: then equal bytes on the wire are the same elements.
bool lists_alike(const Transfers& out, const Transfers& in) {
  return std::ranges::equal(out, in, [](const Transfer* a, const Transfer* b) {
    return a->from.array == b->to.array && a->from.slice == b->to.slice && a->codec == b->codec;
  });
}

// Counts in bytes, because the two directions may be cut differently: each sender has its own slots.
void set_dependency_by_bytes(Program& program, const ProgramMessage& in, const ProgramMessage& partner) {
  std::int64_t unpacked = 0;
  std::int64_t packed = 0;
  std::uint32_t after = 0;
  for (std::uint32_t f = in.first; f < in.last; ++f) {
    unpacked += program.fragments[f].bytes;
    for (; packed < unpacked; ++after) packed += program.fragments[partner.first + after].bytes;
    program.fragments[f].after = after;
  }
}

// In a cycle of a permutation, elements from one rank may take the places of elements that go to another rank.
void set_dependencies_of_cycles(Program& program, ProgramRound& round, const RoundPart& part) {
  for (ProgramMessage& in : round.in) {
    const Transfers& back = part.from.at(program.receivers[in.end].peer());
    const auto out = std::ranges::find_if(part.to, [&](const auto& entry) { return lists_alike(entry.second, back); });
    in.dependency = static_cast<int>(std::distance(part.to.begin(), out));
    set_dependency_by_bytes(program, in, round.out[static_cast<std::size_t>(in.dependency)]);
  }
}

}  // namespace

bool is_exchange(const Transfers& out, const Transfers& in) {
  std::set<std::tuple<int, std::int64_t, std::int64_t>> read;
  const auto range = [](const Place& place) {
    return std::tuple(place.array, place.slice.bounds().first, place.slice.elements());
  };
  for (const Transfer* transfer : out) read.insert(range(transfer->from));
  return std::any_of(in.begin(), in.end(),
                     [&](const Transfer* transfer) { return read.contains(range(transfer->to)); });
}

void set_dependencies(Program& program, ProgramRound& round, const RoundPart& part) {
  if (part.steps) return set_dependencies_of_cycles(program, round, part);
  for (ProgramMessage& in : round.in) {
    const int peer = program.receivers[in.end].peer();
    const auto out_transfers = part.to.find(peer);
    if (out_transfers == part.to.end()) continue;
    const Transfers& out = out_transfers->second;
    const Transfers& back = part.from.at(peer);
    if (!is_exchange(out, back)) continue;
    in.dependency = static_cast<int>(std::distance(part.to.begin(), out_transfers));
    const ProgramMessage& partner = round.out[static_cast<std::size_t>(in.dependency)];
    if (lists_alike(out, back)) {
      set_dependency_by_bytes(program, in, partner);
      continue;
    }
    for (std::uint32_t f = in.first; f < in.last; ++f) program.fragments[f].after = partner.last - partner.first;
    const SlotRing& ring = program.senders[partner.end].ring();
    // All must be packed before the peer frees a slot, and it may not have announced the last slots that it freed.
    const std::uint64_t free = ring.slots - release_mask(static_cast<int>(ring.slots));
    if (partner.last - partner.first > free) {
      throw BadInput("the exchange in place between ranks " + std::to_string(part.to.at(peer).front()->from.rank) +
                     " and " + std::to_string(peer) +
                     " lists its slices in different orders in the two directions and is longer than " +
                     std::to_string(static_cast<std::int64_t>(free)) + " free slots of " +
                     base::counted(ring.slot_bytes, "byte") + "; list them alike, or raise slot_bytes");
    }
  }
}

}  // namespace onehop::detail
