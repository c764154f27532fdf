#include "onehop/group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "src/base/text.h"
#include "src/group/agreement.h"
#include "src/group/control_memory.h"
#include "src/group/group_state.h"
#include "src/group/leaving.h"
#include "src/group/memory_left.h"
#include "src/group/reservation.h"
#include "src/group/user_bootstrap.h"

namespace onehop {
namespace detail {
namespace {

// Moves the object of an owner to the heap and leaks it, so that this process never destroys it.
template <class Owner>
void leave_to_parent(Owner& owner) {
  [[maybe_unused]] const auto* kept = new Owner(std::move(owner));  // NOLINT(cppcoreguidelines-owning-memory)
}

}  // namespace

void GroupState::check_process() const {
  if (process.is_this_process()) return;
  throw_forked(process, "the group of rank " + std::to_string(rank) + " of " + std::to_string(size));
}

GroupState::~GroupState() {
  if (process.is_this_process()) {
    left(*this);
    return;
  }
  // In a forked child, everything that the group shares with its peers and with MPI belongs to the parent and is not
  // closed.
  leave_to_parent(bootstrap);
  leave_to_parent(shared_memory);
  leave_to_parent(remote);
  leave_to_parent(ucx);
  leave_to_parent(reports_owner);
}

int GroupState::other_rank(std::uint32_t word) const noexcept {
  if (word == 0 || word > static_cast<std::uint32_t>(size) || word - 1 == static_cast<std::uint32_t>(rank)) return -1;
  return static_cast<int>(word) - 1;
}

int GroupState::missed_by(int gone) const {
  return other_rank(pages[static_cast<std::size_t>(gone)].page->missed.load(std::memory_order_acquire));
}

int GroupState::missed_elsewhere_by(int gone) const {
  if (const RankPage* const page = pages.at(static_cast<std::size_t>(gone)).page; page != nullptr)
    return static_cast<int>(page->missed_elsewhere.load(std::memory_order_acquire)) - 1;
  const LossReports* const told = reports.load(std::memory_order_acquire);
  return told != nullptr ? told->heard_elsewhere(gone) : -1;
}

bool GroupState::is_gone(int other) {
  const RankPage* const page = pages[static_cast<std::size_t>(other)].page;
  return page == nullptr || has_left(other) || page->leaving.load(std::memory_order_acquire) != 0 || has_ended(other);
}

int GroupState::first_gone(int gone, bool& unsure) {
  const int missed = missed_by(gone);
  if (missed < 0) return gone;
  if (is_gone(missed)) return missed;
  unsure = true;
  return gone;
}

bool GroupState::has_ended(int other) {
  const PeerPage& peer = pages[static_cast<std::size_t>(other)];
  // A process number of another machine means nothing here.
  const bool is_here =
      peer.page != nullptr || (remote == nullptr && peer.host == pages[static_cast<std::size_t>(rank)].host);
  return is_here && processes.ended(other, peer.pid);
}

PeerStatus GroupState::look_at_peers(int waited_for) {
  PeerStatus found;
  int reported = -1;
  for (int r = 0; r < size; ++r) {
    const PeerPage& peer = pages[static_cast<std::size_t>(r)];
    if (r == rank) continue;
    // The order matters: a rank reports what it saw before it closes its group, and closes its group before it ends.
    const bool ended = has_ended(r);
    if (peer.page == nullptr) {
      if (found.lost < 0 && ended) found.lost = r;
      continue;
    }
    const bool closed = has_left(r);
    const int peer_reports = other_rank(peer.page->reported_lost.load(std::memory_order_acquire));
    // A peer that left because another rank had already left or died names that rank.
    const int first = ended || closed ? first_gone(r, found.unsure) : r;
    // One that ended because of a rank of another group comes after those that ended by themselves.
    const bool precedes = found.lost < 0 || (missed_elsewhere_by(found.lost) >= 0 && missed_elsewhere_by(first) < 0);
    if (ended && !closed && precedes) found.lost = first;
    if (r == waited_for && closed) found.closed = first;
    // A rank that gave up because another rank died reports that rank.
    if (reported < 0) reported = peer_reports;
  }
  const LossReports* const told = reports.load(std::memory_order_acquire);
  if (reported < 0 && told != nullptr) reported = other_rank(static_cast<std::uint32_t>(told->heard() + 1));
  if (reported >= 0) found.lost = reported;
  return found;
}

PeerStatus GroupState::poll_peers(int waited_for) {
  PeerStatus found = look_at_peers(waited_for);
  // A rank that died first may have been looked at before it died, and a rank that left because of it after that. A
  // rank that fails closes its groups one after the other.
  constexpr int looks = 500;
  for (int look = 0; look < looks && (found.lost >= 0 || found.closed >= 0) && (look == 0 || found.unsure); ++look) {
    if (look > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found = look_at_peers(waited_for);
  }
  return found;
}

int GroupState::gone_rank() {
  if (const int lost = poll_peers(-1).lost; lost >= 0) return lost;
  for (int r = 0; r < size; ++r) {
    bool unsure = false;
    if (r != rank && has_left(r)) return first_gone(r, unsure);
  }
  const LossReports* const told = reports.load(std::memory_order_acquire);
  return told != nullptr ? told->unreachable() : -1;
}

void GroupState::tell_lost(int lost) noexcept {
  own_page().reported_lost.store(static_cast<std::uint32_t>(lost) + 1, std::memory_order_release);
  if (LossReports* const told = reports.load(std::memory_order_acquire); told != nullptr) told->tell(lost);
  note_loss(*this, lost);
}

void GroupState::throw_if_lost(const std::string& step, int polls) {
  for (int poll = 0; poll < polls; ++poll) {
    if (poll > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const int lost = poll_peers(-1).lost; lost >= 0) {
      tell_lost(lost);
      throw PeerLost(lost, name_of(lost) + " has ended while rank " + std::to_string(rank) + " was in set-up (" + step +
                               "); " + where_to_look(lost));
    }
  }
}

Gathered GroupState::allgather(std::span<const std::byte> mine) {
  check_process();
  if (out_of_step) {
    throw Error("rank " + std::to_string(rank) +
                " did not complete an earlier collective step of this group (a barrier, an all-gather, opening "
                "channels, a split), so its steps no longer match those of the others; make a new group, or start the "
                "program again");
  }
  const ShownStep shown(own_page());
  try {
    return bootstrap->allgather(mine);
  } catch (const PeerLost& error) {
    if (error.rank() < 0 || error.rank() >= size) throw;  // a function of the user may name any
    const PeerStatus status = poll_peers(error.rank());
    // A rank elsewhere does not show whether it has left in order.
    int first = status.lost >= 0 || shares_memory(error.rank()) ? status.lost : error.rank();
    if (first >= 0) {
      tell_lost(first);
    } else {
      // It has left in order, perhaps because it is ending, or because another rank had left before it. Ranks that wait
      // for this one must name the first of them, not this rank.
      first = status.closed >= 0 ? status.closed : error.rank();
      note_loss(*this, first);
    }
    const bool lost_elsewhere = missed_elsewhere_by(first) >= 0;
    if (first == error.rank() && !lost_elsewhere) throw;
    throw PeerLost(first, (first == error.rank() ? "" : name_of(first) + " has ended, and after it ") + error.what() +
                              (lost_elsewhere ? "; " + where_to_look(first) : ""));
  } catch (...) {
    out_of_step = true;
    throw;
  }
}

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
  const Gathered choices = state_->allgather(std::as_bytes(std::span(&own, 1)));
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
  std::vector<int> members;
  for (const auto& [unused, rank] : ordered) members.push_back(rank);
  const auto at = std::find(members.begin(), members.end(), rank());
  const int index = static_cast<int>(at - members.begin());
  std::unique_ptr<detail::Bootstrap> bootstrap = state_->bootstrap->split(color, key);
  if (state_->bootstrap->can_split_alone()) {
    bootstrap = state_->bootstrap->split_alone(color, index, static_cast<int>(members.size()));
    // Until the part is made, and watches its ranks by itself.
    const auto gone = [parent = state_.get(), members] {
      const auto found = std::ranges::find(members, parent->gone_rank());
      return found == members.end() ? -1 : static_cast<int>(found - members.begin());
    };
    if (bootstrap != nullptr) bootstrap->watch(gone, nullptr);
  } else if (bootstrap == nullptr) {
    bootstrap = detail::split_in_memory(*state_, members, index);
  }
  if (members.empty()) return {};
  std::vector<int> world;
  for (const int member : members) {
    world.push_back(state_->world_ranks.empty() ? member : state_->world_ranks[static_cast<std::size_t>(member)]);
  }
  const int size = static_cast<int>(members.size());
  try {
    Group part(detail::make_group(index, size, "split", std::move(bootstrap), std::move(world), state_->world));
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
