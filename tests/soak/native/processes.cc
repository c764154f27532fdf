#include "tests/soak/native/processes.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <thread>

#include "onehop/error.h"
#include "src/group/control_memory.h"
#include "src/group/group_state.h"

namespace onehop::soak {
namespace {

constexpr int most_ranks = 8;

void stay_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (core < 0 || sched_setaffinity(0, sizeof cores, &cores) != 0) _exit(1);
}

// Seconds since it was made. At most a tenth of a second passes per look, so that nothing is a hang because this
// program was stopped too.
class Passed {
 public:
  double look() {
    const double now = steady_seconds();
    seconds_ += std::min(now - looked_, 0.1);
    looked_ = now;
    return seconds_;
  }

 private:
  double seconds_ = 0;
  double looked_ = steady_seconds();
};

[[noreturn]] void be_rank(const std::string& control, int rank, int ranks, Report& report, const RankMain& rank_main) {
  try {
    const Group group(
        detail::make_group(rank, ranks, "launcher", detail::join_control_memory(control, rank, ranks, getppid())));
    rank_main(group, report);
    report.say(Outcome::done, "");
  } catch (const PeerLost& error) {
    report.when = steady_seconds();
    report.lost_rank = error.rank();
    report.say(Outcome::lost, error.what());
  } catch (const OwnFault&) {
    report.say(Outcome::done, "its own fault");
    _exit(1);
  } catch (const std::exception& error) {
    report.say(Outcome::wrong, error.what());
  }
  _exit(report.outcome == Outcome::done ? 0 : report.outcome == Outcome::lost ? 3 : 1);
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

std::int64_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

void Report::say(Outcome what, const char* words) noexcept {
  std::snprintf(text.data(), text.size(), "%s", words);
  outcome = what;
}

struct Processes::Control {
  detail::ControlMemory memory;
};

Processes::Processes(int ranks, bool one_core, const RankMain& rank_main)
    : control_(new Control{detail::ControlMemory::create(ranks)}), statuses_(static_cast<std::size_t>(ranks)) {
  void* shared = mmap(nullptr, sizeof(Report) * most_ranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    delete control_;
    throw std::runtime_error("no memory for the reports of ranks");
  }
  reports_ = static_cast<Report*>(shared);
  for (int rank = 0; rank < most_ranks; ++rank) new (&reports_[rank]) Report;
  const std::string path = control_->memory.path();
  const int core = sched_getcpu();
  const pid_t parent = getpid();
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid < 0) {
      end();
      throw std::runtime_error("cannot fork");
    }
    if (pid == 0) {
      // If this program is killed, its ranks are not left behind.
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
      if (one_core) stay_on(core);
      be_rank(path, rank, ranks, reports_[rank], rank_main);
    }
    pids_.push_back(pid);
  }
}

Processes::~Processes() { end(); }

void Processes::end() {
  for (const pid_t pid : pids_) {
    if (pid == 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  munmap(reports_, sizeof(Report) * most_ranks);
  delete control_;
}

void Processes::signal(int rank, int number) const {
  if (const pid_t pid = pids_[static_cast<std::size_t>(rank)]; pid != 0) kill(pid, number);
}

bool Processes::all_at_work(double seconds) const {
  Passed passed;
  const auto there = [&] {
    return std::all_of(reports_, reports_ + size(), [](const Report& r) { return r.at_work.load(); });
  };
  while (!there()) {
    if (passed.look() > seconds) return false;
    nap(0.0002);
  }
  return true;
}

void Processes::wait(double seconds) {
  Passed passed;
  std::int64_t before = -1;
  for (;;) {
    bool running = false;
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      if (pids_[rank] == 0) continue;
      if (waitpid(pids_[rank], &statuses_[rank], WNOHANG) != pids_[rank]) {
        running = true;
        continue;
      }
      pids_[rank] = 0;
      passed = {};
      // As the launcher does: a rank that ended may not have joined.
      control_->memory.tell_ended(static_cast<int>(rank));
    }
    if (!running) return;
    std::int64_t sum = 0;
    for (int rank = 0; rank < size(); ++rank) sum += reports_[rank].exchanges;
    const bool changed = sum != before;
    if (changed) passed = {};
    before = sum;
    if (passed.look() > seconds) throw std::logic_error("a hang: " + describe());
    // Ranks that share this core are seldom interrupted; the end of one is told to the others soon.
    nap(changed ? 0.003 : 0.0005);
  }
}

std::string Processes::describe() const {
  std::string text = std::to_string(size()) + " ranks";
  for (int rank = 0; rank < size(); ++rank) {
    const int status = this->status(rank);
    text += "\n  rank " + std::to_string(rank) + ": ";
    if (pids_[static_cast<std::size_t>(rank)] != 0) {
      text += "runs";
    } else {
      text += WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                  : "exit code " + std::to_string(WEXITSTATUS(status));
    }
    text += ", " + std::to_string(reports_[rank].exchanges) + " exchanges " + reports_[rank].text.data();
  }
  return text;
}

Counts run_batches(const Batches& batches) {
  const std::int64_t descriptors = open_descriptors();
  Counts done;
  {
    Processes ranks(batches.ranks, batches.one_core, [&](const Group& group, Report& report) {
      for (int number = 0; number < batches.count; ++number) batches.run(group, report, number);
    });
    ranks.wait(hang_seconds);
    done = {ranks.report(0).exchanges, ranks.report(0).schedules, ranks.report(0).adaptive};
    for (int rank = 0; rank < batches.ranks; ++rank) {
      expect(ranks.report(rank).outcome == Outcome::done && ranks.status(rank) == 0, "batches: " + ranks.describe());
      expect(ranks.report(rank).exchanges == done.exchanges,
             "ranks made different numbers of exchanges: " + ranks.describe());
    }
  }
  expect(open_descriptors() == descriptors, "a descriptor was left open");
  return done;
}

}  // namespace onehop::soak
