// Makes a group: ranks announce themselves, map each other's pages, and agree on what they share.
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <type_traits>

#include "onehop/version.h"
#include "src/base/cpu.h"
#include "src/base/env.h"
#include "src/base/text.h"
#include "src/base/trace.h"
#include "src/group/group_state.h"
#include "src/group/group_trace.h"
#include "src/group/leaving.h"

namespace onehop::detail {
namespace {

// A rank's header for the others when a group is made.
struct Introduction {
  char host[96] = {};  // boot, process-number space and user, which must agree for /proc/PID/fd to work
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::int32_t process_barrier = 0;
  std::int32_t traced = 0;            // whether ONEHOP_TRACE names a file
  std::uint64_t word = 0;             // RankPage::word of the rank's page
  std::uint64_t processors[16] = {};  // the first 1024 that the rank may run on
  char machine[64] = {};              // its name, for messages
  char version[32] = {};              // of onehop
  char network[8] = {};               // ONEHOP_NETWORK
};

Introduction introduce(int fd, std::uint64_t word) {
  Introduction own;
  own.word = word;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat space{};
  stat("/proc/self/ns/pid", &space);
  std::string host = boot + "/" + std::to_string(space.st_ino) + "/" + std::to_string(geteuid());
  // For tests: ranks with different names share no memory, those with the same name try to.
  if (const auto name = env::text("ONEHOP_TEST_HOST")) host = *name;
  std::strncpy(own.host, host.c_str(), sizeof own.host - 1);
  utsname system{};
  if (uname(&system) == 0) std::string(system.nodename).copy(own.machine, sizeof own.machine - 1);
  std::string(version()).copy(own.version, sizeof own.version - 1);
  env::choice("ONEHOP_NETWORK").copy(own.network, sizeof own.network - 1);
  own.traced = trace::is_wanted() ? 1 : 0;
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

// Reads what a rank has sent.
Introduction introduction_of(std::span<const std::byte> sent, std::size_t rank) {
  Introduction found;
  if (sent.size() != sizeof found) {
    throw Mismatch("making a group: expected " + base::counted(sizeof found, "byte") + " from rank " +
                   std::to_string(rank) + ", found " + std::to_string(sent.size()) +
                   "; do all ranks run the same version of onehop?");
  }
  std::memcpy(&found, sent.data(), sizeof found);
  found.host[sizeof found.host - 1] = '\0';
  found.machine[sizeof found.machine - 1] = '\0';
  found.version[sizeof found.version - 1] = '\0';
  found.network[sizeof found.network - 1] = '\0';
  return found;
}

// Versions may lay out slots and messages differently.
void check_version(const Introduction& first, const Introduction& other, std::size_t rank) {
  if (std::strcmp(first.version, other.version) == 0) return;
  throw Mismatch("rank 0 runs onehop " + std::string(first.version) + ", but rank " + std::to_string(rank) + " on " +
                 other.machine + " runs onehop " + other.version + "; all ranks need the same version");
}

// Ranks with another network would wait for each other in different steps.
void check_network(const Introduction& first, const Introduction& other, std::size_t rank) {
  const auto takes_ucx = [](const Introduction& one) { return std::strcmp(one.network, "ucx") == 0; };
  if (takes_ucx(first) == takes_ucx(other)) return;
  throw Mismatch("ONEHOP_NETWORK is '" + std::string(first.network) + "' on rank 0, but '" + other.network +
                 "' on rank " + std::to_string(rank) + " on " + other.machine +
                 "; all ranks need the same network (does the launcher pass the variable on to other hosts?)");
}

// Checks that `memory` is the page that `rank` made.
bool is_page_of(const Introduction& rank, const SharedMemory& memory) {
  if (memory.bytes() < static_cast<std::int64_t>(sizeof(RankPage))) return false;
  return reinterpret_cast<const RankPage*>(memory.data())->word == rank.word;
}

// Keeps one copy of each text of a group. Successive ranks mostly have the same one.
class SameTexts {
 public:
  explicit SameTexts(std::set<std::string>& texts) : texts_(texts) {}
  const std::string* operator()(const char* text) {
    if (last_ == nullptr || *last_ != text) last_ = &*texts_.emplace(text).first;
    return last_;
  }

 private:
  std::set<std::string>& texts_;
  const std::string* last_ = nullptr;
};

// The processors that the ranks of this machine may run on.
class LocalProcessors {
 public:
  void add(const Introduction& rank) {
    ++ranks_;
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= rank.processors[w];
  }
  [[nodiscard]] bool are_oversubscribed() const {
    long available = 0;
    for (const std::uint64_t word : words_) available += std::popcount(word);
    return available > 0 && ranks_ > available;
  }

 private:
  std::array<std::uint64_t, std::extent_v<decltype(Introduction::processors)>> words_{};
  long ranks_ = 0;
};

// Maps the page of a peer of this machine. A page that cannot be mapped keeps the reason.
void map_page(GroupState& group, int rank, const Introduction& own, const Introduction& other) {
  PeerPage& peer = group.pages[static_cast<std::size_t>(rank)];
  const bool is_thread = other.pid == own.pid;  // of this process
  try {
    SharedMemory found = is_thread ? SharedMemory::own_memory(other.fd) : SharedMemory{};
    if (found.data() == nullptr) found = SharedMemory::open_at_once(other.pid, other.fd, sizeof(RankPage));
    if (!is_page_of(other, found)) {
      peer.why_not = "it has the machine name of this rank, but process " + std::to_string(other.pid) +
                     " here is another one; it is on a copy of this machine, or in another container";
      return;
    }
    peer.memory = std::move(found);
    if (!is_thread) group.processes.watch(rank, other.pid);
  } catch (const Error& error) {
    peer.why_not = error.what();
  }
}

// Exchanges introductions and maps the peers' pages. Introductions take more memory than pages, and in the next step a
// rank waits for all others, so none is kept until then. Returns whether all ranks are traced.
bool meet(GroupState& group) {
  RankPage& page = group.own_page();
  const Introduction own = introduce(group.pages[static_cast<std::size_t>(group.rank)].memory.fd(), page.word);
  const Gathered gathered = group.bootstrap->allgather(bytes_of(own));
  const Introduction first = introduction_of(gathered.front(), 0);
  page.group_word.store(first.word, std::memory_order_release);
  SameTexts hosts(group.texts);
  SameTexts machines(group.texts);
  LocalProcessors processors;
  group.process_barrier = true;
  bool traced = true;
  for (int rank = 0; rank < group.size; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const Introduction other = introduction_of(gathered[at], at);
    check_version(first, other, at);
    check_network(first, other, at);
    group.process_barrier = group.process_barrier && other.process_barrier != 0;
    traced = traced && other.traced != 0;
    PeerPage& peer = group.pages[at];
    peer.pid = other.pid;
    peer.host = hosts(other.host);
    peer.machine = machines(other.machine);
    // Process numbers of another process-number space mean nothing here. In the same one, trying shows whether memory
    // is shared.
    if (std::strcmp(other.host, own.host) != 0) continue;
    processors.add(other);
    if (rank != group.rank) map_page(group, rank, own, other);
  }
  group.oversubscribed = processors.are_oversubscribed();
  return traced;
}

// Consecutive ranks.
struct Run {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

// The ranks whose pages this rank has mapped, behind an entry with the number of ranks. They are few runs in any
// launch, so that the bytes of the all-gather grow with the number of ranks and not with its square.
std::vector<Run> mapped_ranks(const GroupState& group) {
  std::vector<Run> runs{{0, group.size}};
  for (int r = 0; r < group.size; ++r) {
    if (group.pages[static_cast<std::size_t>(r)].memory.data() == nullptr) continue;
    if (runs.size() == 1 || runs.back().first + runs.back().count != r) runs.push_back({r, 0});
    ++runs.back().count;
  }
  return runs;
}

// Whether `rank` is among the ranks that another rank of a group of `size` ranks has sent; nothing if that rank sent
// something else, because it is in another step.
std::optional<bool> has_mapped(std::span<const std::byte> sent, int size, int rank) {
  if (sent.empty() || sent.size() % sizeof(Run) != 0) return std::nullopt;
  bool found = false;
  for (std::size_t at = 0; at < sent.size(); at += sizeof(Run)) {
    Run run;
    std::memcpy(&run, sent.data() + at, sizeof run);
    const bool valid = at == 0 ? run.first == 0 && run.count == size : run.first >= 0 && run.count > 0;
    if (!valid || run.first > size - run.count) return std::nullopt;
    found = found || (at > 0 && rank >= run.first && rank < run.first + run.count);
  }
  return found;
}

// How many ranks are among them, after has_mapped() has checked them.
int mapped_count(std::span<const std::byte> sent) {
  int count = 0;
  for (std::size_t at = sizeof(Run); at < sent.size(); at += sizeof(Run)) {
    Run run;
    std::memcpy(&run, sent.data() + at, sizeof run);
    count += run.count;
  }
  return count;
}

// Memory is shared between two ranks if each can map the other's.
void agree_on_sharing(GroupState& group) {
  const std::vector<Run> mapped = mapped_ranks(group);
  const Gathered all = group.bootstrap->allgather(std::as_bytes(std::span(mapped)));
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::optional<bool> maps_this = has_mapped(all[r], group.size, group.rank);
    if (!maps_this) {
      throw Mismatch("rank " + std::to_string(r) + " is in another collective step than rank " +
                     std::to_string(group.rank) + ", which makes a group of " + base::counted(group.size, "rank") +
                     "; do all ranks make the same steps in the same order?");
    }
    group.spans_hosts = group.spans_hosts || mapped_count(all[r]) < group.size;
    PeerPage& peer = group.pages[r];
    if (peer.memory.data() == nullptr) continue;
    if (*maps_this) {
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
  const std::string* const host = group.pages[static_cast<std::size_t>(group.rank)].host;
  const bool all_mapped =
      std::ranges::all_of(group.pages, [&](const PeerPage& peer) { return peer.page != nullptr || peer.host != host; });
  if (!all_mapped) group.throw_if_lost("making a group");
}

}  // namespace

std::shared_ptr<GroupState> make_group(int rank, int size, std::string origin, std::unique_ptr<Bootstrap> bootstrap,
                                       std::vector<int> world_ranks, std::uint64_t world) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw BadInput("group: expected 0 <= rank < size, found rank " + std::to_string(rank) + " and size " +
                   std::to_string(size));
  }
  static_cast<void>(cpu::level());  // throws for a wrong ONEHOP_SIMD
  const bool prefers_ucx = env::choice("ONEHOP_NETWORK") == "ucx";
  count_forks();
  auto group = std::make_shared<GroupState>(size);
  group->rank = rank;
  group->prefers_ucx = prefers_ucx;
  group->origin = std::move(origin);
  group->timeout = default_timeout();
  group->bootstrap = std::move(bootstrap);
  group->bootstrap->set_timeout(group->timeout);
  group->world_ranks = std::move(world_ranks);
  group->bootstrap->set_world_ranks(group->world_ranks);

  PeerPage& own = group->pages[static_cast<std::size_t>(rank)];
  own.memory = SharedMemory::create(sizeof(RankPage), "the rank's doorbell");
  own.page = new (own.memory.data()) RankPage{};
  own.page->word = random_word();
  own.page->rank.store(rank, std::memory_order_relaxed);
  own.page->size.store(size, std::memory_order_relaxed);
  own.page->mark.store(RankPage::status_mark, std::memory_order_release);
  std::optional<ShownStep> shown(std::in_place, *own.page);
  const bool traced = meet(*group);
  agree_on_sharing(*group);
  if (world == 0) begin_trace(*group, traced);
  shown.reset();
  group->world = world != 0 ? world : own.page->group_word.load(std::memory_order_relaxed);
  group->remote = group->bootstrap->remote_transport();
  refuse_the_dead(*group);
  group->bootstrap->watch([state = group.get()] { return state->gone_rank(); },
                          [state = group.get()](int lost) { state->tell_lost(lost); });
  entered(*group);
  return group;
}

}  // namespace onehop::detail
