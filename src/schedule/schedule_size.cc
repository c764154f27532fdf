#include "src/schedule/schedule_size.h"

#include "onehop/error.h"
#include "src/base/memory_left.h"
#include "src/base/text.h"

namespace onehop::detail {

void check_ranks(const std::string& pattern, int ranks, std::optional<int> only_rank) {
  if (ranks < 1 || ranks > max_ranks) {
    throw BadInput(pattern + ": expected 1 to " + std::to_string(max_ranks) + " ranks, found " + std::to_string(ranks));
  }
  if (only_rank && (*only_rank < 0 || *only_rank >= ranks)) {
    throw BadInput(pattern + ": expected a rank from 0 to " + std::to_string(ranks - 1) + ", found " +
                   std::to_string(*only_rank));
  }
}

void check_fits(const std::string& pattern, double number, const std::string& things, std::size_t bytes) {
  const double needed = 2 * number * static_cast<double>(bytes);  // a list that grows is copied
  if (needed < 1 << 24) return;                                   // reading what is left takes longer
  const std::int64_t left = available_memory();
  if (needed <= static_cast<double>(left)) return;
  throw BadInput(pattern + ": expected what fits into the " + base::bytes_text(left) +
                 " of memory that are left, found about " + base::number_text(number) + " " + things + " of " +
                 base::bytes_text(static_cast<std::int64_t>(bytes)) +
                 ": make the sizes smaller, or take one part (rank) at a time");
}

}  // namespace onehop::detail
