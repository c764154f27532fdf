#include "src/group/reservation.h"

#include <algorithm>

#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::detail {

std::int64_t sum_of_bytes(std::int64_t a, std::int64_t b) {
  std::int64_t total = 0;
  return __builtin_add_overflow(a, b, &total) ? no_memory_limit : total;
}

Reservation::Reservation(GroupState& group, std::int64_t bytes, const std::string& what)
    : page_(group.pages[static_cast<std::size_t>(group.rank)].memory), bytes_(bytes) {
  page().about_to_take.fetch_add(bytes_, std::memory_order_seq_cst);
  if (bytes_ <= always_fits) return;
  // Read after announcing this rank's bytes, so that of two ranks at least one sees the other.
  std::int64_t others = 0;
  for (int r = 0; r < group.size; ++r) {
    const RankPage* const other = group.pages[static_cast<std::size_t>(r)].page;
    if (r != group.rank && other != nullptr && other->left.load() == 0)
      others = sum_of_bytes(others, other->about_to_take.load(std::memory_order_seq_cst));
  }
  const std::int64_t available = available_memory();
  if (sum_of_bytes(bytes_, others) <= available) return;
  used(bytes_);
  throw Error("not enough memory for " + what + ": " + base::bytes_text(bytes) + " requested on rank " +
              std::to_string(group.rank) + ", " + base::bytes_text(sum_of_bytes(bytes, others)) +
              " including pending requests of other ranks of this machine, and " + base::bytes_text(available) +
              " available on this machine or in its control group; use smaller arrays, or fewer ranks here");
}

Reservation::~Reservation() { used(bytes_); }

void Reservation::used(std::int64_t bytes) noexcept {
  bytes = std::min(bytes, bytes_);
  bytes_ -= bytes;
  page().about_to_take.fetch_sub(bytes, std::memory_order_seq_cst);
}

}  // namespace onehop::detail
