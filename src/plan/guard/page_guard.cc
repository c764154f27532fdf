#include "src/plan/guard/page_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

// On x86-64 an access to an inaccessible page is let through for one instruction (the trap flag). Elsewhere, and under
// sanitizers, which delay SIGTRAP, the first access makes the page accessible until the next close().
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define ONEHOP_SINGLE_STEPS 1
#else
#define ONEHOP_SINGLE_STEPS 0
#endif

namespace onehop::detail {
namespace {

std::uintptr_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::byte* page_of(const std::byte* at) noexcept {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(at) / page_bytes() * page_bytes());
}

void set_access(const MemoryRange& pages, int protection) noexcept {
  // A failure (too many mappings) leaves pages accessible, where nothing is noticed then.
  static_cast<void>(mprotect(pages.begin, static_cast<std::size_t>(pages.end - pages.begin), protection));
}

// The guards that are closed, of all plans of this process. A handler of a signal takes the lock: it interrupts only
// code that has just accessed a guarded page, and nothing that holds the lock does.
struct ClosedGuards {
  std::mutex mutex;
  std::vector<PageGuard*> guards;
  struct sigaction before_fault{};
  struct sigaction before_step{};

  static ClosedGuards& instance() {
    static auto* all = new ClosedGuards;  // never destroyed: handlers use it
    return *all;
  }

  [[nodiscard]] bool guards_page(const std::byte* page) const noexcept {
    return std::ranges::any_of(guards, [page](const PageGuard* guard) { return guard->has_page(page); });
  }
};

// Where the last fault was that concerned no guard. The page may have been opened since, so the access is tried again.
thread_local constinit const std::byte* tried_again = nullptr;

#if ONEHOP_SINGLE_STEPS
constexpr long long trap_flag = 0x100;

// The pages that the present instruction of this thread may access: it touches at most two, at two addresses.
struct Step {
  std::array<std::byte*, 4> pages{};
  std::size_t count = 0;
  long long instruction = 0;
};
thread_local constinit Step step;
#endif

// Hands a signal that does not concern guards to the handler that was there before.
void pass_on(const struct sigaction& before, int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  sigaction(signal, &before, nullptr);  // and the instruction fails again
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  ClosedGuards& all = ClosedGuards::instance();
  auto* const at = static_cast<const std::byte*>(info->si_addr);
  std::byte* const page = page_of(at);
  [[maybe_unused]] auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const bool writes = (machine.gregs[REG_ERR] & 2) != 0;
#else
  const bool writes = false;
#endif
  bool known = false;
  {
    const std::lock_guard lock(all.mutex);
    known = all.guards_page(page);
    if (known) {
      for (PageGuard* guard : all.guards) guard->note(at, writes);
      set_access({page, page + page_bytes()}, PROT_READ | PROT_WRITE);
#if ONEHOP_SINGLE_STEPS
      if (step.count < step.pages.size()) {
        step.pages[step.count++] = page;
        step.instruction = machine.gregs[REG_RIP];
        machine.gregs[REG_EFL] |= trap_flag;
      }
#endif
    }
  }
  errno = saved_errno;
  const bool try_again = !known && tried_again != at;
  tried_again = known ? nullptr : at;
  if (known || try_again) return;
  pass_on(all.before_fault, signal, info, context);
}

#if ONEHOP_SINGLE_STEPS
void on_step(int signal, siginfo_t* info, void* context) {
  ClosedGuards& all = ClosedGuards::instance();
  if (step.count == 0) return pass_on(all.before_step, signal, info, context);
  const int saved_errno = errno;
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  machine.gregs[REG_EFL] &= ~trap_flag;
  // A string instruction takes a step for each of its elements. Its pages stay accessible until the next close().
  if (machine.gregs[REG_RIP] != step.instruction) {
    const std::lock_guard lock(all.mutex);
    for (std::size_t i = 0; i < step.count; ++i) {
      std::byte* const page = step.pages[i];
      if (all.guards_page(page)) set_access({page, page + page_bytes()}, PROT_NONE);
    }
  }
  step.count = 0;
  errno = saved_errno;
}
#endif

using Handler = void (*)(int, siginfo_t*, void*);

void install(int signal, Handler handler, struct sigaction& before) {
  struct sigaction now{};
  sigaction(signal, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handler) return;
  before = now;
  struct sigaction ours{};
  ours.sa_sigaction = handler;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  sigaction(signal, &ours, nullptr);
}

void install_handlers(ClosedGuards& all) {
  install(SIGSEGV, &on_fault, all.before_fault);
#if ONEHOP_SINGLE_STEPS
  install(SIGTRAP, &on_step, all.before_step);
#endif
}

}  // namespace

PageGuard::PageGuard(std::vector<MemoryRange> bytes, std::span<const MemoryRange> inside) : bytes_(std::move(bytes)) {
  const auto page = page_bytes();
  for (const MemoryRange& range : bytes_) {
    for (const MemoryRange& memory : inside) {
      std::byte* const first = page_of(memory.begin + (page - 1));
      std::byte* const last = page_of(memory.end);
      MemoryRange pages{std::max(first, page_of(range.begin)), std::min(last, page_of(range.end + (page - 1)))};
      if (pages.begin >= pages.end) continue;
      if (!pages_.empty() && pages.begin <= pages_.back().end) {
        pages_.back().end = std::max(pages_.back().end, pages.end);
      } else {
        pages_.push_back(pages);
      }
    }
  }
}

PageGuard::~PageGuard() { open(); }

void PageGuard::close() {
  if (closed_ || pages_.empty()) return;
  closed_ = true;
  ClosedGuards& all = ClosedGuards::instance();
  const std::lock_guard lock(all.mutex);
  install_handlers(all);
  all.guards.push_back(this);
  for (const MemoryRange& pages : pages_) set_access(pages, PROT_NONE);
}

void PageGuard::open() {
  if (!closed_) return;
  closed_ = false;
  ClosedGuards& all = ClosedGuards::instance();
  const std::lock_guard lock(all.mutex);
  std::erase(all.guards, this);
  for (const MemoryRange& pages : pages_) {
    if (all.guards.empty()) {
      set_access(pages, PROT_READ | PROT_WRITE);
      continue;
    }
    // Pages that another plan guards stay inaccessible.
    for (std::byte* page = pages.begin; page < pages.end; page += page_bytes()) {
      if (!all.guards_page(page)) set_access({page, page + page_bytes()}, PROT_READ | PROT_WRITE);
    }
  }
}

PageGuard::Access PageGuard::take_access() noexcept {
  const std::byte* const at = found_.exchange(nullptr);
  return {at, at != nullptr && found_writes_.load()};
}

bool PageGuard::has_page(const std::byte* page) const noexcept {
  const auto after = std::ranges::upper_bound(pages_, page, {}, &MemoryRange::begin);
  return after != pages_.begin() && page < std::prev(after)->end;
}

void PageGuard::note(const std::byte* at, bool writes) noexcept {
  const auto after = std::ranges::upper_bound(bytes_, at, {}, &MemoryRange::begin);
  if (after == bytes_.begin() || at >= std::prev(after)->end || found_.load() != nullptr) return;
  found_writes_ = writes;
  found_ = at;
}

}  // namespace onehop::detail
