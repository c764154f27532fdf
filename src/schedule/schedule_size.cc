#include "src/schedule/schedule_size.h"

#include "onehop/error.h"

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

}  // namespace onehop::detail
