#include "src/plan/program/combine_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "src/schedule/element_set.h"

namespace onehop::detail {
namespace {

// A transfer that combines, and the rank that sends it.
struct Combining {
  const Transfer* transfer;
  int from;
};

// Whether slices could overlap, by their first and last elements.
bool may_overlap(const std::vector<Combining>& transfers) {
  std::vector<std::pair<std::int64_t, std::int64_t>> bounds;
  for (const Combining& one : transfers) bounds.push_back(one.transfer->to.slice.bounds());
  std::ranges::sort(bounds);
  return std::ranges::adjacent_find(bounds, [](const auto& a, const auto& b) { return b.first < a.second; }) !=
         bounds.end();
}

// Returns the transfers with elements that are combined into more than once.
std::vector<Combining> overlapping(const std::vector<Combining>& transfers, std::int64_t elements) {
  if (!may_overlap(transfers)) return {};
  ElementSet written(elements);
  ElementSet repeated(elements);
  for (const Combining& one : transfers) written.insert(one.transfer->to.slice, &repeated);
  std::vector<Combining> found;
  for (const Combining& one : transfers) {
    if (repeated.first_inside(one.transfer->to.slice) != ElementSet::none) found.push_back(one);
  }
  return found;
}

}  // namespace

CombineOrder::CombineOrder(const Schedule& schedule, const RoundPart& part, int rank) {
  if (part.steps) return;
  std::map<int, std::vector<Combining>> by_array;
  const auto add = [&](const Transfer* transfer) {
    if (transfer->combine != Combine::replace) by_array[transfer->to.array].push_back({transfer, transfer->from.rank});
  };
  for (const Transfer* transfer : part.own) add(transfer);
  for (const auto& [peer, transfers] : part.from) {
    for (std::size_t t = exchanged_with(peer, part); t < transfers.size(); ++t) add(transfers[t]);
  }
  for (const auto& [array, transfers] : by_array) {
    const std::int64_t elements = schedule.arrays[static_cast<std::size_t>(array)].elements_on(rank);
    const std::vector<Combining> found = overlapping(transfers, elements);
    // The transfers of one rank are in the order of the round anyway.
    if (std::ranges::all_of(found, [&](const Combining& one) { return one.from == found.front().from; })) continue;
    for (const Combining& one : found) {
      if (one.from == rank) {
        own_.insert(one.transfer);
      } else {
        peers_.insert(one.from);
      }
    }
  }
}

void CombineOrder::add(const Transfer* transfer, const ProgramOrdered& part) {
  // Transfers of a message that take turns on the wire only replace: any place behind their predecessors will do.
  if (!parts_.empty() && parts_.back().second.message == part.message) {
    transfer = std::max(transfer, parts_.back().first);
  }
  parts_.emplace_back(transfer, part);
}

std::vector<ProgramOrdered> CombineOrder::parts() {
  // The transfers of a round lie in one array, in its order.
  std::ranges::stable_sort(parts_, {}, [](const auto& part) { return part.first; });
  std::vector<ProgramOrdered> sorted;
  for (const auto& [transfer, part] : parts_) sorted.push_back(part);
  return sorted;
}

}  // namespace onehop::detail
