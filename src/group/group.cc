#include "onehop/group.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/base/memory_left.h"
#include "src/base/text.h"
#include "src/group/agreement.h"
#include "src/group/control_memory.h"
#include "src/group/group_state.h"
#include "src/group/leaving.h"
#include "src/group/reservation.h"
#include "src/group/user_bootstrap.h"

namespace onehop {
namespace detail {
namespace {

class AloneBootstrap final : public Bootstrap {
 public:
  Gathered allgather(std::span<const std::byte> mine) override { return {{mine.begin(), mine.end()}}; }
};

struct Choice {
  std::int32_t color;
  std::int32_t key;
};

// The lowest member makes control memory and announces its path in the parent's all-gather.
std::unique_ptr<Bootstrap> split_in_memory(GroupState& parent, const std::vector<int>& members, int own_index) {
  const bool leads = own_index == 0 && !members.empty();
  std::optional<ControlMemory> control;
  std::string path;
  if (leads) {
    control = ControlMemory::create(static_cast<int>(members.size()));
    path = control->path();
  }
  const Gathered paths = parent.allgather(std::as_bytes(std::span<const char>(path)));
  std::unique_ptr<Bootstrap> joined;
  std::string failure;
  if (!members.empty()) {
    const auto& bytes = paths[static_cast<std::size_t>(members.front())];
    const std::string where(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    try {
      joined = join_control_memory(where, own_index, static_cast<int>(members.size()), 0);
    } catch (const Error& error) {
      failure = std::string(error.what()) +
                "; a group over several machines can be split only if it was made from MPI or a store";
    }
  }
  // The leader's memory must live until all have mapped it, and a failure must be thrown on every rank.
  agree_or_lost(parent, "splitting a group", failure);
  return joined;
}

}  // namespace
}  // namespace detail

Group Group::alone() { return Group(detail::make_group(0, 1, "alone", std::make_unique<detail::AloneBootstrap>())); }

Group Group::from_allgather(int rank, int size, AllGather allgather) {
  if (!allgather) throw BadInput("from_allgather: expected a function that gathers bytes from all ranks, found none");
  return Group(
      detail::make_group(rank, size, "allgather", detail::make_user_bootstrap(rank, size, std::move(allgather))));
}

Group Group::from_allgather(int rank, int size, const AllGatherMaker& maker) {
  if (!maker) throw BadInput("from_allgather: expected a function that makes all-gathers, found none");
  return Group(detail::make_group(rank, size, "allgather", detail::make_user_bootstrap(rank, size, maker, "")));
}

int Group::rank() const noexcept { return state_->rank; }
int Group::size() const noexcept { return state_->size; }
const std::string& Group::origin() const noexcept { return state_->origin; }

namespace {

void check_rank(const Group& group, int rank) {
  if (rank >= 0 && rank < group.size()) return;
  throw BadInput("expected a rank from 0 to " + std::to_string(group.size() - 1) + ", found " + std::to_string(rank));
}

}  // namespace

std::string Group::name_of(int rank) const {
  check_rank(*this, rank);
  return state_->name_of(rank);
}

bool Group::shares_memory(int rank) const {
  check_rank(*this, rank);
  return state_->shares_memory(rank);
}

int Group::gone_rank() const {
  state_->check_process();
  return state_->gone_rank();
}

std::vector<int> Group::local_ranks() const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) {
    if (state_->shares_memory(r)) ranks.push_back(r);
  }
  return ranks;
}

void Group::barrier() const { static_cast<void>(state_->allgather({})); }
Gathered Group::allgather(std::span<const std::byte> mine) const { return state_->allgather(mine); }

Group Group::split(int color, int key) const {
  const detail::Choice own{color, key};
  const Gathered choices = state_->allgather(detail::bytes_of(own));
  std::vector<std::pair<int, int>> ordered;  // (key, rank)
  for (std::size_t r = 0; r < choices.size(); ++r) {
    detail::Choice choice{};
    if (choices[r].size() != sizeof choice) {
      throw Mismatch("split: rank " + std::to_string(r) + " is in another collective step than this one");
    }
    std::memcpy(&choice, choices[r].data(), sizeof choice);
    if (color >= 0 && choice.color == color) ordered.emplace_back(choice.key, static_cast<int>(r));
  }
  std::sort(ordered.begin(), ordered.end());
  detail::GroupPart joined{color, key, {}, 0};
  std::vector<int>& members = joined.members;
  for (const auto& [unused, rank] : ordered) members.push_back(rank);
  joined.rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  std::unique_ptr<detail::Bootstrap> bootstrap;
  if (state_->bootstrap->can_split()) {
    bootstrap = state_->bootstrap->split(joined);
    // Until the part is made, and watches its ranks by itself.
    const auto gone = [parent = state_.get(), members] {
      const auto found = std::ranges::find(members, parent->gone_rank());
      return found == members.end() ? -1 : static_cast<int>(found - members.begin());
    };
    if (bootstrap != nullptr) bootstrap->watch(gone, [](int) {});
  } else {
    bootstrap = detail::split_in_memory(*state_, members, joined.rank);
  }
  if (members.empty()) return {};
  std::vector<int> world;
  for (const int member : members) {
    world.push_back(state_->world_ranks.empty() ? member : state_->world_ranks[static_cast<std::size_t>(member)]);
  }
  const int size = static_cast<int>(members.size());
  try {
    Group part(detail::make_group(joined.rank, size, "split", std::move(bootstrap), std::move(world), state_->world));
    part.set_timeout(timeout());
    return part;
  } catch (const PeerLost& error) {
    // The caller knows this group, not the one that could not be made.
    if (error.rank() < 0) throw;
    const int lost = members[static_cast<std::size_t>(error.rank())];
    detail::note_loss(*state_, lost);
    throw PeerLost(lost, std::string("splitting a group: ") + error.what());
  }
}

SharedArray Group::allocate(std::int64_t bytes) const {
  const std::string what = "an array of the group";
  auto reserved = std::make_shared<detail::Reservation>(*state_, std::max<std::int64_t>(bytes, 0), what);
  auto memory =
      std::make_shared<detail::SharedMemory>(detail::SharedMemory::create(bytes, what, [&](std::int64_t part) {
        if (!detail::memory_is_pretended()) reserved->used(part);
      }));
  SharedArray array;
  array.bytes_ = {memory->data(), static_cast<std::size_t>(bytes)};
  array.owner_ = std::make_shared<std::pair<decltype(memory), decltype(reserved)>>(memory, reserved);
  return array;
}

void Group::set_timeout(double seconds) const {
  if (!(seconds >= 0))
    throw BadInput("set_timeout: expected 0 (no limit) or more seconds, found " + base::number_text(seconds));
  state_->timeout = seconds;
  state_->bootstrap->set_timeout(seconds);
}

void Group::abort() const noexcept { detail::aborted(*state_); }

double Group::timeout() const noexcept { return state_->timeout; }

std::int64_t available_memory() { return detail::available_memory(); }

}  // namespace onehop
