#include "src/group/control_memory.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "src/base/text.h"

#include "onehop/error.h"
#include "src/group/driven.h"
#include "src/group/liveness.h"
#include "src/group/process_space.h"

namespace onehop::detail {
namespace {

constexpr std::uint64_t magic = 0x34'70'6f'68'65'6e'6f;  // "onehop4"
constexpr std::int64_t mailbox_bytes = 16 << 10;
constexpr std::int64_t max_bytes = std::int64_t{1} << 40;  // limit of one contribution; set-up never needs as much

// One rank's part. The rank writes round r (from 1) into mailbox r mod 2 and then sets `round` to r. Once all ranks are
// at round r, all have read round r - 1, so two mailboxes suffice and nothing is ever reset.
struct alignas(128) Seat {
  std::atomic<std::uint64_t> round;
  std::atomic<std::int32_t> pid;  // 0: not yet joined
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> ended;          // set by the launcher, even if the rank never joined
  std::atomic<std::uint32_t> reported_lost;  // the rank (plus one) because of which this one gave up
  std::atomic<std::int64_t> total[2];        // bytes of the whole contribution
  std::atomic<std::int64_t> length[2];       // bytes in the mailbox
  std::atomic<std::uint64_t> space;          // of the process number; 0: not yet joined
  std::byte mailbox[2][mailbox_bytes];
};

struct Control {
  std::uint64_t magic;
  std::int32_t ranks;
};

constexpr std::int64_t header_bytes = 128;

// What is wrong, and what to do, if two processes of a launch do not see each other's process numbers.
constexpr const char* elsewhere =
    " are in different PID namespaces (a container for each rank, or unshare), so they cannot share memory: let all "
    "ranks have one namespace (run `onehop launch` inside the container, or docker run --pid=container:NAME), or use "
    "MPI or Group.from_store between containers";

constexpr const char* without_proc =
    " has no /proc, through which ranks reach each other's memory; mount it (chroot and sandboxes hide it)";

// The numbers of the spaces of two processes that differ.
std::string why_not_shared(std::uint64_t one, std::uint64_t other) {
  if (one != no_proc && other != no_proc) return elsewhere;
  return std::string(" cannot share memory: one of them") + without_proc;
}

Seat& seat_of(const SharedMemory& memory, int rank) {
  return *reinterpret_cast<Seat*>(memory.data() + header_bytes + static_cast<std::int64_t>(sizeof(Seat)) * rank);
}

class ControlBootstrap final : public Bootstrap {
 public:
  ControlBootstrap(SharedMemory memory, int rank, int ranks, pid_t launcher)
      : memory_(std::move(memory)), rank_(rank), ranks_(ranks), launcher_(launcher), watched_(ranks) {
    std::int32_t nobody = 0;
    if (!seat(rank).pid.compare_exchange_strong(nobody, getpid())) {
      throw Mismatch("rank " + std::to_string(rank) + " of this launch is already taken by process " +
                     std::to_string(nobody) +
                     "; a program may make its world group once per process, and another launcher inside `onehop "
                     "launch` starts ranks that this launch does not have: use one launcher");
    }
    seat(rank).space.store(space_, std::memory_order_release);
  }

  // A forked child does not leave: the seat belongs to its parent.
  ~ControlBootstrap() override {
    if (process_ == getpid()) seat(rank_).left.store(1, std::memory_order_release);
  }

  void set_timeout(double seconds) override { timeout_ = seconds; }
  void set_world_ranks(std::vector<int> ranks) override { world_ranks_ = std::move(ranks); }
  void watch(std::function<int()> gone, std::function<void(int)> /*tell*/) override { gone_ = std::move(gone); }

  Gathered allgather(std::span<const std::byte> mine) override {
    std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(ranks_));
    std::int64_t longest = 0;
    std::int64_t sent = 0;
    do {
      post(mine, sent);
      for (int other = 0; other < ranks_; ++other) {
        wait_for(other);
        longest = std::max(longest, take(other, sent, all[static_cast<std::size_t>(other)]));
      }
      sent += mailbox_bytes;
    } while (sent < longest);
    return all;
  }

 private:
  Seat& seat(int rank) const { return seat_of(memory_, rank); }

  void post(std::span<const std::byte> mine, std::int64_t from) {
    ++round_;
    Seat& own = seat(rank_);
    const auto box = round_ & 1;
    const auto total = static_cast<std::int64_t>(mine.size());
    const std::int64_t length = std::clamp<std::int64_t>(total - from, 0, mailbox_bytes);
    own.total[box].store(total, std::memory_order_relaxed);
    own.length[box].store(length, std::memory_order_relaxed);
    if (length > 0) std::memcpy(own.mailbox[box], mine.data() + from, static_cast<std::size_t>(length));
    own.round.store(round_, std::memory_order_release);
  }

  // Appends the mailbox of `other`, its contribution from byte `from` on, and returns the total length. Reads both
  // numbers once and checks them, because another process may have written anything.
  std::int64_t take(int other, std::int64_t from, std::vector<std::byte>& to) const {
    const Seat& theirs = seat(other);
    const auto box = round_ & 1;
    const std::int64_t total = theirs.total[box].load(std::memory_order_relaxed);
    const std::int64_t length = theirs.length[box].load(std::memory_order_relaxed);
    const auto had = static_cast<std::int64_t>(to.size());
    if (total < had || total > max_bytes || length != std::clamp<std::int64_t>(total - from, 0, mailbox_bytes)) {
      throw Error("rank " + std::to_string(other) + " wrote invalid data into the control memory (all-gather " +
                  std::to_string(round_) + ": " + base::counted(length, "byte") + " from byte " + std::to_string(from) +
                  " on of " + std::to_string(total) +
                  "); do all ranks run the same version of onehop, and does any of them overwrite memory?");
    }
    to.insert(to.end(), theirs.mailbox[box], theirs.mailbox[box] + length);
    return total;
  }

  // Set-up may take long (a rank may read its input first), so the wait soon yields and then naps.
  void wait_for(int other) {
    const Seat& from = seat(other);
    Deadline deadline(timeout_);
    for (int polls = 0; from.round.load(std::memory_order_acquire) < round_; ++polls) {
      Driven::drive_any();
      if (polls < 200) {
        sched_yield();
        continue;
      }
      const timespec nap{0, polls < 1000 ? 50'000 : 1'000'000};
      nanosleep(&nap, nullptr);
      if (polls % 16 == 0) check(other, deadline);
    }
    throw_if_elsewhere(other);
  }

  // A process number of another space would name another process here, or none.
  void throw_if_elsewhere(int other) const {
    const std::uint64_t theirs = seat(other).space.load(std::memory_order_acquire);
    if (theirs == 0 || theirs == space_) return;
    throw Error(name_of(other) + " and rank " + std::to_string(rank_) + why_not_shared(theirs, space_));
  }

  void check(int other, Deadline& deadline) {
    call_interrupt_check();
    const std::string step = "set-up (all-gather " + std::to_string(round_) + ")";
    throw_if_elsewhere(other);
    const int aborted = gone_ ? gone_() : -1;
    // Also those behind `other`, which may be busy for long.
    for (int rank = other; rank < ranks_; ++rank) {
      // A contribution posted before the rank ended counts, so read the round after the state of the process.
      const bool gone = has_gone(rank);
      if ((gone || rank == aborted) && seat(rank).round.load(std::memory_order_acquire) < round_)
        throw_lost(rank, gone ? "ended" : "aborted this group", step);
    }
    if (launcher_ != 0 && launcher_watch_.ended(0, launcher_)) {
      throw PeerLost(-1, "the launcher (process " + std::to_string(launcher_) + ") has ended while rank " +
                             std::to_string(rank_) + " waited in " + step);
    }
    deadline.check([&] {
      return name_of(rank_) + " waited for " + name_of(other) + " in " + step +
             (seat(other).pid.load() == 0 ? ", which has not joined" : "");
    });
  }

  [[nodiscard]] bool has_gone(int rank) {
    const Seat& its = seat(rank);
    return its.left.load(std::memory_order_acquire) != 0 || its.ended.load(std::memory_order_acquire) != 0 ||
           (its.space.load(std::memory_order_acquire) == space_ && watched_.ended(rank, its.pid.load()));
  }

  // Names the rank that was lost first: `other` may have ended only because it lost another rank.
  [[noreturn]] void throw_lost(int other, const std::string& how, const std::string& step) {
    const pid_t pid = seat(other).pid.load();
    const std::uint32_t reported_lost = seat(other).reported_lost.load(std::memory_order_acquire);
    const bool named = reported_lost != 0 && reported_lost <= static_cast<std::uint32_t>(ranks_);
    const int lost = named ? static_cast<int>(reported_lost) - 1 : other;
    seat(rank_).reported_lost.store(static_cast<std::uint32_t>(lost) + 1, std::memory_order_release);
    const std::string name = name_of(other);
    const std::string who =
        pid != 0 ? name + " (process " + std::to_string(pid) + ") has " + how : name + " has ended without joining";
    const int world = world_ranks_.empty() ? lost : world_ranks_[static_cast<std::size_t>(lost)];
    const char* const before = seat(lost).pid.load() != 0 ? " has ended, and after it " : " has not joined, and so ";
    throw PeerLost(lost, (lost == other ? "" : name_of(lost) + before) + who + " while rank " + std::to_string(rank_) +
                             " waited for it in " + step + "; see the output of rank " + std::to_string(world) +
                             (world_ranks_.empty() ? "" : " of the world") + " for the reason");
  }

  // "rank 1", "rank 1 of this group (rank 3 of the world)"
  [[nodiscard]] std::string name_of(int rank) const {
    std::string name = "rank " + std::to_string(rank);
    if (world_ranks_.empty()) return name;
    return name + " of this group (rank " + std::to_string(world_ranks_[static_cast<std::size_t>(rank)]) +
           " of the world)";
  }

  SharedMemory memory_;
  int rank_;
  int ranks_;
  pid_t launcher_;
  pid_t process_ = getpid();
  std::uint64_t space_ = process_space();
  ProcessWatch watched_;
  ProcessWatch launcher_watch_{1};
  std::uint64_t round_ = 0;
  double timeout_ = default_timeout();
  std::vector<int> world_ranks_;
  std::function<int()> gone_;
};

}  // namespace

ControlMemory ControlMemory::create(int ranks) {
  if (ranks < 1) throw BadInput("launch: expected 1 rank or more, found " + std::to_string(ranks));
  ControlMemory control;
  control.memory_ = SharedMemory::create(control_memory_bytes(ranks), "the launch's control memory");
  new (control.memory_.data()) Control{magic, ranks};
  return control;
}

std::int64_t control_memory_bytes(int ranks) { return header_bytes + static_cast<std::int64_t>(sizeof(Seat)) * ranks; }

void ControlMemory::tell_ended(int rank) {
  if (const int ranks = reinterpret_cast<const Control*>(memory_.data())->ranks; rank < 0 || rank >= ranks) {
    throw BadInput("launch: expected a rank below " + std::to_string(ranks) + ", found " + std::to_string(rank));
  }
  seat_of(memory_, rank).ended.store(1, std::memory_order_release);
}

void ControlMemory::tell_missing(int rank) {
  seat_of(memory_, 0).reported_lost.store(static_cast<std::uint32_t>(rank) + 1, std::memory_order_release);
}

std::string ControlMemory::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory_.fd());
}

void check_space(int rank, pid_t launcher, std::uint64_t space) {
  if (space == process_space()) return;
  throw Error("rank " + std::to_string(rank) + " and its launcher (process " + std::to_string(launcher) + ")" +
              why_not_shared(space, process_space()));
}

std::unique_ptr<Bootstrap> join_control_memory(const std::string& path, int rank, int ranks, pid_t launcher) {
  SharedMemory memory;
  try {
    memory = SharedMemory::open(path, header_bytes);
  } catch (const Error& error) {
    if (launcher != 0 && ProcessWatch(1).ended(0, launcher)) {
      throw PeerLost(-1, "the launcher (process " + std::to_string(launcher) + ") has ended before rank " +
                             std::to_string(rank) + " joined");
    }
    if (process_space() == no_proc)
      throw Error(std::string("cannot reach the launcher's memory: this process") + without_proc);
    if (!proc_is_of_own_space()) {
      throw Error(std::string("cannot reach the launcher's memory: ") + error.what() +
                  "; /proc belongs to another PID namespace than this process: mount one of its own (unshare "
                  "--mount-proc)");
    }
    throw Error(std::string("cannot reach the launcher's memory: ") + error.what() +
                "; has `onehop launch` ended, or does this process run as another user or in another container?");
  }
  return join_control_memory(std::move(memory), path, rank, ranks, launcher);
}

std::unique_ptr<Bootstrap> join_control_memory(SharedMemory memory, const std::string& where, int rank, int ranks,
                                               pid_t launcher) {
  Control control{};
  if (memory.bytes() >= header_bytes) std::memcpy(&control, memory.data(), sizeof control);
  if (control.magic != magic) {
    throw Error(where +
                " is not the memory of an onehop launch of this version; start the program again with `onehop launch`");
  }
  if (control.ranks != ranks || rank < 0 || rank >= ranks) {
    throw Mismatch("the launch was made for " + base::counted(control.ranks, "rank") +
                   ", but this process was told to be rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
  if (memory.bytes() < control_memory_bytes(ranks)) {
    throw Error(where + " has " + base::counted(memory.bytes(), "byte") + ", too few for " +
                base::counted(ranks, "rank") + " (" + base::counted(control_memory_bytes(ranks), "byte") + ")");
  }
  return std::make_unique<ControlBootstrap>(std::move(memory), rank, ranks, launcher);
}

}  // namespace onehop::detail
