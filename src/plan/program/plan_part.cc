#include "src/plan/program/plan_part.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "onehop/tuning.h"
#include "src/base/slot_policy.h"
#include "src/base/text.h"
#include "src/schedule/element_set.h"
#include "src/schedule/exchange_partners.h"
#include "src/schedule/shape_check.h"
#include "src/schedule/wire_size.h"

namespace onehop::detail {
namespace {

std::string text(std::int64_t value) { return std::to_string(value); }

// Whether a rank's transfers read or write an array.
bool touches(const Schedule& schedule, int rank, int array) {
  const auto is_there = [&](const Place& place) {
    return place.rank == rank && place.array == array && place.slice.elements() > 0;
  };
  return std::any_of(schedule.rounds.begin(), schedule.rounds.end(), [&](const Round& round) {
    return std::any_of(round.transfers.begin(), round.transfers.end(),
                       [&](const Transfer& transfer) { return is_there(transfer.from) || is_there(transfer.to); });
  });
}

void sort_transfer(const Transfer& transfer, int rank, RoundPart& part) {
  if (transfer.from.slice.elements() == 0) return;
  if (transfer.from.rank == transfer.to.rank) {
    part.own.push_back(&transfer);
  } else if (transfer.from.rank == rank) {
    part.to[transfer.to.rank].push_back(&transfer);
  } else {
    part.from[transfer.from.rank].push_back(&transfer);
  }
}

// Moves exact exchanges to the front of both messages between two ranks, in the order of the lower rank's message,
// which both ranks know. Then equal places in the two messages are the same elements.
void put_exchanges_first(RoundPart& part, int rank) {
  for (auto& [peer, sent] : part.to) {
    const auto received = part.from.find(peer);
    if (received == part.from.end()) continue;
    Transfers& first = rank < peer ? sent : received->second;
    Transfers& second = rank < peer ? received->second : sent;
    ExchangePartners partners;
    for (const Transfer* transfer : second) partners.add(*transfer);
    std::map<const Transfer*, std::size_t> place;  // among the exchanges
    for (const Transfer* transfer : first) {
      const Transfer* const partner = partners.of(*transfer);
      if (partner == nullptr || !place.emplace(partner, place.size() / 2).second) continue;
      place.emplace(transfer, place.at(partner));
    }
    if (place.empty()) continue;
    const auto place_of = [&](const Transfer* transfer) {
      const auto found = place.find(transfer);
      return found == place.end() ? place.size() : found->second;
    };
    std::ranges::stable_sort(first, {}, place_of);
    std::ranges::stable_sort(second, {}, place_of);
    part.exchanged[peer] = place.size() / 2;
  }
}

// Splits a permutation of index bits into an exchange between ranks and swaps inside each rank. The round's own
// transfers serve only to check its declaration and to count its bytes.
void split_permutation(const Schedule& schedule, std::size_t round, int rank, RoundPart& part) {
  const BitPermutation& permutation = *schedule.rounds[round].permutation;
  const std::string name = "round " + text(static_cast<std::int64_t>(round)) + " and its permutation: ";
  if (const std::string problem = permutation_problem(schedule, permutation); !problem.empty()) {
    throw BadInput(name + problem);
  }
  std::vector<const Transfer*> found;
  for (const Transfer& transfer : schedule.rounds[round].transfers) {
    if (transfer.from.rank == rank || transfer.to.rank == rank) found.push_back(&transfer);
  }
  const Codec codec = found.empty() ? Codec::raw : found.front()->codec;
  if (!std::ranges::equal(found, permutation_transfers(permutation, codec, rank, found.size() + 1),
                          [](const Transfer* a, const Transfer& b) { return *a == b; })) {
    throw BadInput(name + "the transfers of rank " + text(rank) +
                   " are not those of the permutation; build the round with permute_bits, or remove its permutation");
  }
  for (const Transfer* transfer : found) {
    if (transfer->from.rank == transfer->to.rank) part.moved.bytes_local += schedule.bytes(*transfer);
  }
  part.steps = steps_of(permutation);
  part.exchange = permutation_transfers(part.steps->exchange, codec, rank);
  for (const Transfer& transfer : part.exchange) sort_transfer(transfer, rank, part);
}

// The transfers of a round that write one array of a rank, by their numbers, and whether their slices could overlap.
struct Writes {
  std::vector<int> replacing;
  std::vector<int> combining;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;  // first and last element
  bool lists = false;                                        // a list may name an element twice

  void add(int number, const Transfer& transfer) {
    (transfer.combine == Combine::replace ? replacing : combining).push_back(number);
    std::pair<std::int64_t, std::int64_t> span{std::numeric_limits<std::int64_t>::max(), -1};
    transfer.to.slice.for_each_run([&](std::int64_t begin, std::int64_t count) {
      span = {std::min(span.first, begin), std::max(span.second, begin + count - 1)};
    });
    spans.push_back(span);
    lists |= transfer.to.slice.is_list();
  }
  [[nodiscard]] bool may_overlap() {
    if (replacing.empty()) return false;
    std::ranges::sort(spans);
    return lists || std::ranges::adjacent_find(
                        spans, [](const auto& a, const auto& b) { return a.second >= b.first; }) != spans.end();
  }
};

// Throws BadInput if a transfer of the round writes an element that another one replaces.
void check_writes(const Schedule& schedule, int round, int rank, const Writes& writes) {
  const auto& transfers = schedule.rounds[static_cast<std::size_t>(round)].transfers;
  const auto slice = [&](int t) -> const Slice& { return transfers[static_cast<std::size_t>(t)].to.slice; };
  const int array = transfers[static_cast<std::size_t>(writes.replacing.front())].to.array;
  const ArraySpec& spec = schedule.arrays[static_cast<std::size_t>(array)];
  ElementSet written(spec.elements_on(rank));
  const auto refuse = [&](int t, std::int64_t element) {
    const auto other = std::ranges::find_if(writes.replacing, [&](int one) {
      ElementSet elements(spec.elements_on(rank));
      elements.insert(slice(one));
      return one != t && elements.first_inside(Slice::range(element, 1)) != ElementSet::none;
    });
    const std::string by = other == writes.replacing.end() ? "the transfer itself" : describe(schedule, round, *other);
    throw BadInput(describe(schedule, round, t) + " writes element " + text(element) + " of array " + spec.name +
                   " on rank " + text(rank) + ", which " + by +
                   " writes in the same round: remove one, or put it into another round");
  };
  for (const int t : writes.replacing) {
    if (const std::int64_t element = written.insert(slice(t)); element != ElementSet::none) refuse(t, element);
  }
  for (const int t : writes.combining) {
    if (const std::int64_t element = written.first_inside(slice(t)); element != ElementSet::none) refuse(t, element);
  }
}

void check_writes(const Schedule& schedule, int rank) {
  for (int r = 0; r < static_cast<int>(schedule.rounds.size()); ++r) {
    const Round& round = schedule.rounds[static_cast<std::size_t>(r)];
    if (round.permutation) continue;
    std::map<int, Writes> by_array;
    for (int t = 0; t < static_cast<int>(round.transfers.size()); ++t) {
      const Transfer& transfer = round.transfers[static_cast<std::size_t>(t)];
      if (transfer.to.rank == rank && transfer.to.slice.elements() > 0) by_array[transfer.to.array].add(t, transfer);
    }
    for (auto& [array, writes] : by_array) {
      if (writes.may_overlap()) check_writes(schedule, r, rank, writes);
    }
  }
}

void mix(std::uint64_t& hash, std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; }

}  // namespace

void check_arguments(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
                     const PlanOptions& options) {
  if (schedule.ranks != group.size()) {
    throw BadInput("the schedule is for " + base::counted(schedule.ranks, "rank") + ", but the group has " +
                   text(group.size()));
  }
  if (arrays.size() != schedule.arrays.size()) {
    throw BadInput("plan: expected the " + base::counted(static_cast<std::int64_t>(schedule.arrays.size()), "array") +
                   " of the schedule, found " + text(static_cast<std::int64_t>(arrays.size())));
  }
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const ArraySpec& spec = schedule.arrays[a];
    if (const std::string problem = array_problem(spec, schedule.ranks); !problem.empty()) {
      throw BadInput("array " + text(static_cast<std::int64_t>(a)) + " (" + spec.name + "): " + problem);
    }
    // An array that this rank neither reads nor writes may be absent.
    if (arrays[a].empty() && !touches(schedule, group.rank(), static_cast<int>(a))) continue;
    const std::int64_t needed = spec.elements_on(group.rank()) * spec.element_bytes;
    if (static_cast<std::int64_t>(arrays[a].size()) < needed) {
      throw BadInput("array " + text(static_cast<std::int64_t>(a)) + " (" + spec.name + ") has " +
                     base::counted(static_cast<std::int64_t>(arrays[a].size()), "byte") + " on rank " +
                     text(group.rank()) + ", but the schedule needs " + text(needed));
    }
  }
  if (options.slots < 0 || options.slot_bytes < 0 || options.chunk_bytes < 0) {
    throw BadInput("plan: expected slots, slot_bytes and chunk_bytes of 0 (onehop chooses) or more");
  }
}

std::vector<RoundPart> sort_transfers(const Schedule& schedule, int rank) {
  std::vector<RoundPart> parts(schedule.rounds.size());
  for (std::size_t r = 0; r < parts.size(); ++r) {
    if (schedule.rounds[r].permutation) {
      split_permutation(schedule, r, rank, parts[r]);
      continue;
    }
    const auto& transfers = schedule.rounds[r].transfers;
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      const Transfer& transfer = transfers[t];
      if (transfer.from.rank != rank && transfer.to.rank != rank) continue;
      if (const std::string problem = transfer_problem(schedule, transfer); !problem.empty()) {
        throw BadInput(describe(schedule, static_cast<int>(r), static_cast<int>(t)) + ": " + problem);
      }
      sort_transfer(transfer, rank, parts[r]);
    }
    put_exchanges_first(parts[r], rank);
  }
  check_writes(schedule, rank);
  return parts;
}

std::uint64_t permutations_of(const Schedule& schedule) {
  std::uint64_t hash = 0;
  for (std::size_t r = 0; r < schedule.rounds.size(); ++r) {
    if (!schedule.rounds[r].permutation) continue;
    const BitPermutation& permutation = *schedule.rounds[r].permutation;
    if (hash == 0) hash = 0xcbf29ce484222325;
    mix(hash, r);
    mix(hash, static_cast<std::uint64_t>(permutation.array));
    mix(hash, static_cast<std::uint64_t>(permutation.local_bits));
    for (const int bit : permutation.to) mix(hash, static_cast<std::uint64_t>(bit));
  }
  return hash;
}

std::int64_t unit_bytes(const ArraySpec& array, Codec codec) {
  return bytes_on_wire(array, codec, elements_per_cut(array, codec));
}

void add_message(Lane& lane, const Schedule& schedule, std::size_t round, const Transfers& transfers) {
  std::int64_t bytes = 0;
  for (const Transfer* transfer : transfers) {
    bytes += schedule.bytes(*transfer);
    const ArraySpec& to = schedule.arrays[static_cast<std::size_t>(transfer->to.array)];
    lane.unit_bytes = std::max(lane.unit_bytes, unit_bytes(to, transfer->codec));
    mix(lane.signature, round);
    mix(lane.signature, static_cast<std::uint64_t>(transfer->from.slice.elements()));
    mix(lane.signature, static_cast<std::uint64_t>(to.element_bytes));
    mix(lane.signature, static_cast<std::uint64_t>(transfer->combine) << 8 | static_cast<std::uint64_t>(to.type) << 4 |
                            static_cast<std::uint64_t>(transfer->codec));
  }
  lane.bytes = std::max(lane.bytes, bytes);
}

ChannelSpec spec_for(ChannelSpec::Direction direction, int peer, const Lane& lane, const PlanOptions& options,
                     bool between_machines) {
  ChannelSpec spec;
  spec.direction = direction;
  spec.peer = peer;
  spec.bytes = lane.bytes;
  const base::SlotSizes sizes =
      base::plan_slots({.bytes = lane.bytes,
                        .unit_bytes = lane.unit_bytes,
                        .permutes_between_machines = lane.permutes && between_machines,
                        .side_by_side = lane.side_by_side},
                       {options.slots, options.slot_bytes, options.chunk_bytes}, tuning().slot_bytes);
  spec.slots = sizes.slots;
  spec.slot_bytes = sizes.slot_bytes;
  spec.chunk_bytes = sizes.chunk_bytes;
  spec.signature = lane.signature;
  return spec;
}

}  // namespace onehop::detail
