#include "onehop/error.h"
#include "onehop/patterns.h"
#include "src/base/checked.h"

namespace onehop {

namespace {

void add_must_cover(Schedule& schedule, int rank, std::int64_t elements) {
  const std::int64_t all = schedule.ranks * elements;
  const std::int64_t own = rank * elements;
  for (const Slice& slice : {Slice::range(0, own), Slice::range(own + elements, all - own - elements)}) {
    if (slice.elements() > 0) schedule.must_cover.push_back({rank, 0, slice});
  }
}

}  // namespace

Schedule allgather(int ranks, std::int64_t elements, std::int64_t element_bytes, std::optional<int> only_rank) {
  if (ranks < 1) throw BadInput("allgather: expected 1 rank or more, found " + std::to_string(ranks));
  if (elements < 0) throw BadInput("allgather: expected 0 elements or more, found " + std::to_string(elements));
  if (element_bytes < 1) {
    throw BadInput("allgather: expected element_bytes of 1 or more, found " + std::to_string(element_bytes));
  }
  if (only_rank && (*only_rank < 0 || *only_rank >= ranks)) {
    throw BadInput("allgather: expected a rank from 0 to " + std::to_string(ranks - 1) + ", found " +
                   std::to_string(*only_rank));
  }
  const std::int64_t all = detail::checked_multiply(ranks, elements, "the number of elements of an allgather");
  (void)detail::checked_multiply(all, element_bytes, "the bytes of an allgather");

  Schedule schedule{"allgather", ranks, {{"gathered", element_bytes, ElementType::bytes, {all}}}, {Round{}}, {}};
  for (int from = 0; from < ranks; ++from) {
    const Slice block = Slice::range(from * elements, elements);
    for (int to = 0; to < ranks && elements > 0; ++to) {
      const bool wanted = !only_rank || *only_rank == from || *only_rank == to;
      if (from == to || !wanted) continue;
      schedule.rounds.front().transfers.push_back({{from, 0, block}, {to, 0, block}, Combine::replace, Codec::raw});
    }
    if (!only_rank || *only_rank == from) add_must_cover(schedule, from, elements);
  }
  return schedule;
}

}  // namespace onehop
