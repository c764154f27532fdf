#include "onehop/error.h"
#include "onehop/patterns.h"
#include "src/base/checked.h"
#include "src/schedule/schedule_size.h"

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
  detail::check_ranks("allgather", ranks, only_rank);
  if (elements < 0) throw BadInput("allgather: expected 0 elements or more, found " + std::to_string(elements));
  if (element_bytes < 1) {
    throw BadInput("allgather: expected element_bytes of 1 or more, found " + std::to_string(element_bytes));
  }
  const std::int64_t all = detail::checked_multiply(ranks, elements, "the number of elements of an allgather");
  (void)detail::checked_multiply(all, element_bytes, "the bytes of an allgather");

  Schedule schedule{"allgather", ranks, {{"gathered", element_bytes, ElementType::bytes, {all}}}, {Round{}}, {}};
  if (elements == 0) return schedule;
  detail::for_each_pair("allgather", ranks, only_rank, [&](int from, int to) {
    const Slice block = Slice::range(from * elements, elements);
    if (from == to) return add_must_cover(schedule, from, elements);
    schedule.rounds.front().transfers.push_back({{from, 0, block}, {to, 0, block}, Combine::replace, Codec::raw});
  });
  return schedule;
}

}  // namespace onehop
