#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/channel/staging.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"

namespace onehop {

namespace {

constexpr const char* area_name = "the memory from which the other ranks read";

// Where a rank's area is.
struct Offer {
  std::int32_t fd = -1;
  std::int64_t bytes = 0;
};

}  // namespace

struct SharedAreas::Areas {
  std::vector<detail::SharedMemory> by_rank;
  int rank = 0;
};

SharedAreas::SharedAreas(const Group& group, std::int64_t bytes) {
  detail::GroupState& state = *group.state();
  auto areas = std::make_shared<Areas>();
  areas->rank = state.rank;
  areas->by_rank.resize(static_cast<std::size_t>(state.size));
  detail::SharedMemory& own = areas->by_rank[static_cast<std::size_t>(state.rank)];
  std::string failure;
  try {
    own = detail::SharedMemory::create_unbacked(bytes, area_name);
  } catch (const Error& error) {
    failure = error.what();
  }
  constexpr const char* step = "sharing memory";
  const std::vector<Offer> offers = detail::gather_offers(state, step, Offer{own.fd(), bytes}, failure);
  try {
    for (std::size_t r = 0; r < offers.size(); ++r) {
      if (static_cast<int>(r) == state.rank) continue;
      areas->by_rank[r] = detail::SharedMemory::open(state.pages[r].pid, offers[r].fd, offers[r].bytes);
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  // No rank continues, and perhaps ends, before all ranks have mapped everything.
  detail::agree_or_lost(state, step, failure);
  own_ = own.data();
  areas_ = std::move(areas);
}

const std::byte* SharedAreas::of(int rank) const noexcept {
  return areas_->by_rank[static_cast<std::size_t>(rank)].data();
}

std::int64_t SharedAreas::back() const {
  const detail::SharedMemory& own = areas_->by_rank[static_cast<std::size_t>(areas_->rank)];
  return own.back(area_name) ? own.bytes() : 0;
}

}  // namespace onehop
