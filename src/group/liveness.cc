#include "src/group/liveness.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "onehop/error.h"
#include "onehop/group.h"
#include "src/base/clock.h"
#include "src/base/env.h"

namespace onehop {
namespace {
std::atomic<InterruptCheck> interrupt_check{nullptr};
}

void set_interrupt_check(InterruptCheck check) noexcept { interrupt_check.store(check); }

namespace detail {

void call_interrupt_check() {
  if (const InterruptCheck check = interrupt_check.load(std::memory_order_relaxed)) check();
}

ProcessWatch::ProcessWatch(int processes) : fds_(static_cast<std::size_t>(processes)) {
  for (std::atomic<int>& fd : fds_) fd = -1;
}

ProcessWatch::~ProcessWatch() {
  for (const int fd : fds_) {
    if (fd >= 0) close(fd);
  }
}

void ProcessWatch::watch(int index, pid_t pid) {
  std::atomic<int>& fd = fds_[static_cast<std::size_t>(index)];
  if (fd != -1 || pid == getpid()) return;
  int opened = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (opened < 0) opened = errno == ESRCH ? -2 : -1;
  int unwatched = -1;
  if (!fd.compare_exchange_strong(unwatched, opened) && opened >= 0) close(opened);  // another thread was first
}

bool ProcessWatch::ended(int index, pid_t pid) {
  watch(index, pid);
  const int fd = fds_[static_cast<std::size_t>(index)];
  if (fd < 0) {
    // No pidfd (old kernel, no descriptors left): fall back to the process number.
    return fd == -2 || (pid != getpid() && kill(pid, 0) != 0 && errno == ESRCH);
  }
  pollfd readable{fd, POLLIN, 0};
  return poll(&readable, 1, 0) > 0;
}

double default_timeout() { return env::number("ONEHOP_TIMEOUT").value_or(0); }

Deadline::Deadline(double seconds) : limit_(seconds) {}

double Deadline::seconds() const { return base::steady_seconds() - begin_; }

void Deadline::throw_timeout(const std::string& what, double waited) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", waited);
  throw Timeout(what + " for " + text +
                " s, longer than the timeout of the group; is that rank busy, stopped, or in another step?");
}

void Deadline::warn(const std::string& what, double waited) {
  std::fprintf(stderr, "onehop: %s for %.0f s and goes on waiting (set ONEHOP_TIMEOUT to give up)\n", what.c_str(),
               waited);
}

}  // namespace detail
}  // namespace onehop
