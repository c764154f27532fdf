#include "onehop/group.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <random>
#include <thread>

#include "src/base/cpu.h"
#include "src/group/control_memory.h"
#include "src/group/group_state.h"
#include "src/group/leaving.h"
#include "src/group/reservation.h"
#include "src/group/user_bootstrap.h"

namespace onehop {
namespace detail {
namespace {

// A rank's announcement to the others when a group is made.
struct Introduction {
  char host[96] = {};  // boot, process-number space and user, which must agree for /proc/PID/fd to work
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::int32_t process_barrier = 0;
  std::int32_t padding = 0;
  std::uint64_t word = 0;             // RankPage::word of the rank's page
  std::uint64_t processors[16] = {};  // the first 1024 that the rank may run on
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

Introduction introduce(int fd, std::uint64_t word) {
  Introduction own;
  own.word = word;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat space{};
  stat("/proc/self/ns/pid", &space);
  std::string host = boot + "/" + std::to_string(space.st_ino) + "/" + std::to_string(geteuid());
  // For tests: ranks with different names share no memory, those with the same name try to.
  if (const char* name = std::getenv("ONEHOP_TEST_HOST"); name != nullptr && *name != '\0') host = name;
  std::strncpy(own.host, host.c_str(), sizeof own.host - 1);
  own.pid = getpid();
  own.fd = fd;
  own.process_barrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 ? 1 : 0;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    std::memcpy(own.processors, &mask, std::min(sizeof mask, sizeof own.processors));
  return own;
}

std::uint64_t random_word() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

// Checks that `memory` is the page that `rank` made.
bool is_page_of(const Introduction& rank, const SharedMemory& memory) {
  if (memory.bytes() < static_cast<std::int64_t>(sizeof(RankPage))) return false;
  return reinterpret_cast<const RankPage*>(memory.data())->word == rank.word;
}

// Maps the pages of all peers. A page that cannot be mapped keeps the reason.
void map_pages(GroupState& group, const std::vector<Introduction>& all) {
  const Introduction& own = all[static_cast<std::size_t>(group.rank)];
  for (int r = 0; r < group.size; ++r) {
    const Introduction& other = all[static_cast<std::size_t>(r)];
    PeerPage& peer = group.pages[static_cast<std::size_t>(r)];
    peer.pid = other.pid;
    peer.host = other.host;
    if (r == group.rank) continue;
    if (std::strcmp(own.host, other.host) != 0) {
      peer.why_not = "it is on another machine, in another container, or belongs to another user";
      continue;
    }
    try {
      SharedMemory found = SharedMemory::open(other.pid, other.fd, sizeof(RankPage));
      if (!is_page_of(other, found)) {
        peer.why_not = "it has the machine name of this rank, but process " + std::to_string(other.pid) +
                       " here is another one; it is on a copy of this machine, or in another container";
        continue;
      }
      peer.memory = std::move(found);
      group.processes.watch(r, other.pid);
    } catch (const Error& error) {
      peer.why_not = error.what();
    }
  }
}

// Memory is shared between two ranks if each can map the other's.
void agree_on_sharing(GroupState& group) {
  std::vector<std::byte> reach(static_cast<std::size_t>(group.size));
  for (std::size_t r = 0; r < reach.size(); ++r) reach[r] = std::byte{group.pages[r].memory.data() != nullptr};
  const Gathered all = group.bootstrap->allgather(reach);
  for (std::size_t r = 0; r < reach.size(); ++r) {
    if (all[r].size() != reach.size()) {
      throw Mismatch("rank " + std::to_string(r) + " is in another collective step than rank " +
                     std::to_string(group.rank) + ", which makes a group of " + std::to_string(group.size) +
                     " ranks; do all ranks make the same steps in the same order?");
    }
    PeerPage& peer = group.pages[r];
    if (peer.memory.data() == nullptr) continue;
    if (all[r][static_cast<std::size_t>(group.rank)] == std::byte{1}) {
      peer.page = reinterpret_cast<RankPage*>(peer.memory.data());
    } else {
      peer.why_not = "rank " + std::to_string(r) + " cannot map this rank's memory";
    }
  }
}

// Throws PeerLost if a rank of this machine cannot be mapped because it has died. If ranks may be on other machines, a
// process number that does not exist here proves nothing.
void refuse_the_dead(GroupState& group) {
  if (group.remote != nullptr) return;
  const std::string& host = group.pages[static_cast<std::size_t>(group.rank)].host;
  const bool all_mapped =
      std::ranges::all_of(group.pages, [&](const PeerPage& peer) { return peer.page != nullptr || peer.host != host; });
  if (!all_mapped) group.throw_if_lost("making a group");
}

bool is_oversubscribed(const GroupState& group, const std::vector<Introduction>& all) {
  std::uint64_t processors[16] = {};
  long local_ranks = 0;
  for (int r = 0; r < group.size; ++r) {
    if (group.pages[static_cast<std::size_t>(r)].host != group.pages[static_cast<std::size_t>(group.rank)].host)
      continue;
    ++local_ranks;
    for (std::size_t w = 0; w < 16; ++w) processors[w] |= all[static_cast<std::size_t>(r)].processors[w];
  }
  long available = 0;
  for (const std::uint64_t word : processors) available += std::popcount(word);
  return available > 0 && local_ranks > available;
}

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
}

PeerStatus GroupState::poll_peers(int waited_for) {
  PeerStatus found;
  int reported = -1;
  // The rank that a peer names in a word of its page, which holds the rank plus one. -1: none, this rank, or a number
  // outside the group.
  const auto other_rank = [this](std::uint32_t word) {
    if (word == 0 || word > static_cast<std::uint32_t>(size) || word - 1 == static_cast<std::uint32_t>(rank)) return -1;
    return static_cast<int>(word) - 1;
  };
  for (int r = 0; r < size; ++r) {
    const PeerPage& peer = pages[static_cast<std::size_t>(r)];
    if (r == rank) continue;
    if (peer.page == nullptr) {
      if (remote == nullptr && found.lost < 0 && peer.host == pages[static_cast<std::size_t>(rank)].host &&
          processes.ended(r, peer.pid))
        found.lost = r;
      continue;
    }
    // The order matters: a rank reports what it saw before it closes its group, and closes its group before it ends.
    const bool ended = processes.ended(r, peer.pid);
    const bool closed = peer.page->left.load(std::memory_order_acquire) != 0;
    const int peer_reports = other_rank(peer.page->reported_lost.load(std::memory_order_acquire));
    // A peer that left because another rank had already left names that rank.
    const int missed = ended || closed ? other_rank(peer.page->missed.load(std::memory_order_acquire)) : -1;
    const int first = missed < 0 ? r : missed;
    if (found.lost < 0 && ended && !closed) found.lost = first;
    if (r == waited_for && closed) found.closed = first;
    // A rank that gave up because another rank died reports that rank.
    if (reported < 0) reported = peer_reports;
  }
  if (reported >= 0) found.lost = reported;
  return found;
}

int GroupState::gone_rank() {
  if (const int lost = poll_peers(-1).lost; lost >= 0) return lost;
  for (int r = 0; r < size; ++r) {
    const RankPage* page = pages[static_cast<std::size_t>(r)].page;
    if (r != rank && page != nullptr && page->left.load(std::memory_order_acquire) != 0) return r;
  }
  return -1;
}

void GroupState::throw_if_lost(const std::string& step) {
  for (int look = 0; look < 50; ++look) {
    if (const int lost = poll_peers(-1).lost; lost >= 0) {
      tell_lost(lost);
      throw PeerLost(lost, name_of(lost) + " has ended while rank " + std::to_string(rank) + " was in set-up (" + step +
                               "); " + where_to_look(lost));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
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
  try {
    return bootstrap->allgather(mine);
  } catch (const PeerLost& error) {
    const int lost = error.rank() < 0 ? -1 : poll_peers(error.rank()).lost;
    if (lost >= 0) {
      tell_lost(lost);
    } else if (error.rank() >= 0) {
      // It has left in order, perhaps because it is ending. Ranks that wait for this one must name it, not this rank.
      own_page().missed.store(static_cast<std::uint32_t>(error.rank()) + 1, std::memory_order_release);
    }
    if (lost < 0 || lost == error.rank()) throw;
    throw PeerLost(lost, name_of(lost) + " has ended, and after it " + error.what());
  } catch (...) {
    out_of_step = true;
    throw;
  }
}

std::shared_ptr<GroupState> make_group(int rank, int size, std::string origin, std::unique_ptr<Bootstrap> bootstrap,
                                       std::vector<int> world_ranks) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw BadInput("group: expected 0 <= rank < size, found rank " + std::to_string(rank) + " and size " +
                   std::to_string(size));
  }
  static_cast<void>(cpu::level());  // throws for a wrong ONEHOP_SIMD
  count_forks();
  auto group = std::make_shared<GroupState>(size);
  group->rank = rank;
  group->origin = std::move(origin);
  group->timeout = default_timeout();
  group->bootstrap = std::move(bootstrap);
  group->world_ranks = std::move(world_ranks);
  group->bootstrap->set_world_ranks(group->world_ranks);

  PeerPage& own = group->pages[static_cast<std::size_t>(rank)];
  own.memory = SharedMemory::create(sizeof(RankPage), "the rank's doorbell");
  own.page = new (own.memory.data()) RankPage{};
  own.page->word = random_word();
  const Gathered gathered = group->bootstrap->allgather(bytes_of(introduce(own.memory.fd(), own.page->word)));
  std::vector<Introduction> all(static_cast<std::size_t>(size));
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (gathered[r].size() != sizeof(Introduction)) {
      throw Mismatch("making a group: expected " + std::to_string(sizeof(Introduction)) + " bytes from rank " +
                     std::to_string(r) + ", found " + std::to_string(gathered[r].size()) +
                     "; do all ranks run the same version of onehop?");
    }
    std::memcpy(&all[r], gathered[r].data(), sizeof(Introduction));
    all[r].host[sizeof all[r].host - 1] = '\0';
  }
  map_pages(*group, all);
  agree_on_sharing(*group);
  group->oversubscribed = is_oversubscribed(*group, all);
  group->process_barrier =
      std::all_of(all.begin(), all.end(), [](const Introduction& i) { return i.process_barrier != 0; });
  group->remote = group->bootstrap->remote_transport();
  refuse_the_dead(*group);
  group->bootstrap->watch([state = group.get()] { return state->gone_rank(); },
                          [state = group.get()](int lost) { state->tell_lost(lost); });
  entered(*group);
  return group;
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
      failure = error.what();
    }
  }
  // The leader's memory must live until all have mapped it, and a failure must be thrown on every rank.
  const Gathered failures = parent.allgather(std::as_bytes(std::span<const char>(failure)));
  for (std::size_t r = 0; r < failures.size(); ++r) {
    if (failures[r].empty()) continue;
    parent.throw_if_lost("splitting a group");
    throw Error("split: rank " + std::to_string(r) + ": " +
                std::string(reinterpret_cast<const char*>(failures[r].data()), failures[r].size()) +
                "; a group over several machines can be split only if it was made from MPI");
  }
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

int Group::rank() const noexcept { return state_->rank; }
int Group::size() const noexcept { return state_->size; }
const std::string& Group::origin() const noexcept { return state_->origin; }

bool Group::shares_memory(int rank) const {
  if (rank < 0 || rank >= size()) {
    throw BadInput("expected a rank from 0 to " + std::to_string(size() - 1) + ", found " + std::to_string(rank));
  }
  return state_->shares_memory(rank);
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
  std::vector<int> members;
  for (const auto& [unused, rank] : ordered) members.push_back(rank);
  const auto at = std::find(members.begin(), members.end(), rank());
  const int index = static_cast<int>(at - members.begin());
  std::unique_ptr<detail::Bootstrap> bootstrap = state_->bootstrap->split(color, key);
  if (bootstrap == nullptr) bootstrap = detail::split_in_memory(*state_, members, index);
  if (members.empty()) return {};
  std::vector<int> world;
  for (const int member : members) {
    world.push_back(state_->world_ranks.empty() ? member : state_->world_ranks[static_cast<std::size_t>(member)]);
  }
  const int size = static_cast<int>(members.size());
  Group part(detail::make_group(index, size, "split", std::move(bootstrap), std::move(world)));
  part.set_timeout(timeout());
  return part;
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
    throw BadInput("set_timeout: expected 0 (no limit) or more seconds, found " + std::to_string(seconds));
  state_->timeout = seconds;
  state_->bootstrap->set_timeout(seconds);
}

double Group::timeout() const noexcept { return state_->timeout; }

std::int64_t available_memory() { return detail::available_memory(); }

}  // namespace onehop
