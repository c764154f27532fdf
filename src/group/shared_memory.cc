#include "src/group/shared_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/base/memory_left.h"
#include "src/base/text.h"
#include "src/group/memory_file.h"
#include "src/group/process_space.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace onehop::detail {
namespace {

constexpr std::int64_t huge_page = std::int64_t{2} << 20U;
#if defined(MADV_COLLAPSE)
constexpr int collapse = MADV_COLLAPSE;
#else
constexpr int collapse = 25;
#endif
// With memory mapped at an address with chosen lower bits (SharedMemory::open), these bits are equal.
constexpr std::uintptr_t chosen_bits = std::uintptr_t{1} << 28U;

// Maps at an address that equals `low_bits` modulo `window`, down to whole pages; null if the address space has no room
// for that.
std::byte* map_at(int fd, std::int64_t bytes, std::uintptr_t low_bits, std::uintptr_t window) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto size = (static_cast<std::uintptr_t>(bytes) + page - 1) / page * page;
  void* const room = mmap(nullptr, size + window, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(room);
  const std::uintptr_t before = (low_bits / page * page - begin) % window;
  std::byte* const at = static_cast<std::byte*>(room) + before;
  void* const mapped = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) {
    munmap(room, size + window);
    return nullptr;
  }
  if (before > 0) munmap(room, before);
  if (window > before) munmap(at + size, window - before);
  return at;
}

// In a child of a fork the memory may lie where a thread of the parent had its stack. The address sanitizer does not
// know that this stack is gone, and takes the marks around its variables for those of the memory.
std::byte* unmarked(std::byte* at, [[maybe_unused]] std::int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(at, static_cast<std::size_t>(bytes));
#endif
  return at;
}

std::byte* map(int fd, std::int64_t bytes, const std::string& what) {
  if (bytes >= huge_page) {
    if (std::byte* const aligned = map_at(fd, bytes, 0, huge_page); aligned != nullptr) return unmarked(aligned, bytes);
  }
  void* at = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    throw Error("cannot map " + base::bytes_text(bytes) + " of " + what + ": " + std::strerror(errno) +
                "; check `ulimit -v` and the memory limit of the container");
  }
  return unmarked(static_cast<std::byte*>(at), bytes);
}

// Small requests are not checked: reading the limits would cost more than they are worth.
void check_available(std::int64_t bytes, const std::string& what) {
  if (bytes <= 1 << 20) return;
  const std::int64_t available = available_memory();
  if (bytes > available) {
    throw Error("not enough memory for " + what + ": " + base::bytes_text(bytes) + " requested, " +
                base::bytes_text(available) +
                " available on this machine or in its control group; use smaller arrays, fewer ranks here, or a "
                "smaller slot_bytes");
  }
}

// A file that grows beyond the limit ends the process by a signal (SIGXFSZ), and a memfd is a file.
void check_file_limit(std::int64_t bytes, const std::string& what) {
  struct rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      static_cast<std::uint64_t>(bytes) <= limit.rlim_cur)
    return;
  throw Error("cannot make " + base::bytes_text(bytes) + " of shared memory for " + what +
              ": the limit of the size of files is " + base::bytes_text(static_cast<std::int64_t>(limit.rlim_cur)) +
              "; raise `ulimit -f`");
}

// Backs the whole huge pages of memory by huge pages of the kernel, so that strided accesses miss the TLB less often:
// since Linux 6.1, as far as there are any, and also where the kernel does not do it by itself (shmem_enabled). The
// first page of each is there before, because the kernel only collapses what exists. Backing 64 MiB takes 7 ms in this
// way and 20 ms page by page, but on a busy or fragmented machine up to 10 s for 4 GiB, so it ends after a moment.
void back_huge_pages(int fd, std::byte* data, std::int64_t bytes) {
  constexpr std::int64_t at_once = 8 * huge_page;
  constexpr double longest = 0.05;  // seconds
  if (reinterpret_cast<std::uintptr_t>(data) % huge_page != 0) return;
  const std::int64_t end = bytes / huge_page * huge_page;
  const double begin = base::steady_seconds();
  for (std::int64_t at = 0; at < end && base::steady_seconds() - begin < longest; at += at_once) {
    const std::int64_t part = std::min(at_once, end - at);
    for (std::int64_t page = at; page < at + part; page += huge_page) {
      if (posix_fallocate(fd, page, 1) != 0) return;
    }
    if (madvise(data + at, static_cast<std::size_t>(part), collapse) != 0) return;
  }
}

// Memory of another process is used only after this check: it is a regular file of this user whose size is fixed. The
// process number may belong to another process by now, or the descriptor to another file. Returns the size.
std::int64_t checked_size(int fd, std::int64_t least_bytes, const std::string& where) {
  struct stat status{};
  if (fstat(fd, &status) != 0) throw Error("cannot examine " + where + ": " + std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    throw Error(where + " is not memory of onehop: expected a memfd, found another kind of file");
  if (status.st_uid != own_user()) {
    throw Error(where + " belongs to user " + std::to_string(status.st_uid) + ", but this process to user " +
                std::to_string(own_user()) + ": memory of another user is not used");
  }
  if (!has_fixed_size(fd, status)) {
    throw Error(where + " is not memory of onehop: expected a memfd whose size is sealed, found one that can still " +
                "be shortened; do all processes run the same version of onehop?");
  }
  if (status.st_size < least_bytes) {
    throw Error(where + " has " + base::counted(status.st_size, "byte") + ", but at least " +
                std::to_string(least_bytes) + " are needed; do all processes run the same version of onehop?");
  }
  return status.st_size;
}

// Backs a part of memory. Returns the number of the error, or 0.
int back_part(int fd, std::byte* data, std::int64_t at, std::int64_t bytes) {
  const int failed = posix_fallocate(fd, at, bytes);
  if (failed != ENOSYS && failed != EPERM && failed != EOPNOTSUPP) return failed;
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which old headers lack
  return madvise(data + at, static_cast<std::size_t>(bytes), populate_write) == 0 ? 0 : failed;
}

std::string path_of(pid_t pid, int fd) { return "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd); }

// Waits until a process has ended that has closed its descriptors: the kernel closes them first, and shows the end of a
// large process milliseconds later. Then the caller finds that the process is lost. Gives up after a second.
void await_end(pid_t pid) {
  if (pid == getpid()) return;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return;
  constexpr int most_ms = 1000;
  pollfd ended{process, POLLIN, 0};
  static_cast<void>(poll(&ended, 1, most_ms));
  close(process);
}

// Opens descriptor `fd` of process `pid`, if that process belongs to the same user and the descriptor is a file.
int open_of_process(int pid, int fd, const std::string& path, bool awaits_end) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const uid_t user = own_user();
  const int process = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (process < 0) throw Error("cannot open " + path + ": " + std::strerror(errno));
  const std::string name = "fd/" + std::to_string(fd);
  struct stat owner{};
  struct stat file{};
  std::string trouble;
  int opened = -1;
  bool gone = false;
  const auto cannot_open = [&] {
    gone = errno == ENOENT;
    trouble = "cannot open " + path + ": " + std::strerror(errno);
  };
  if (fstat(process, &owner) != 0 || fstatat(process, name.c_str(), &file, 0) != 0) {
    cannot_open();
  } else if (owner.st_uid != user) {
    trouble = "process " + std::to_string(pid) + " belongs to user " + std::to_string(owner.st_uid) +
              ", but this process to user " + std::to_string(user) + ": its memory is not used";
  } else if (!S_ISREG(file.st_mode)) {
    // Not opened, because that could block (a FIFO) or have side effects (a device).
    trouble = path + " is not memory of onehop: expected a memfd, found another kind of file";
  } else {
    opened = openat(process, name.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0) cannot_open();
  }
  close(process);
  if (gone && awaits_end) await_end(pid);
  if (!trouble.empty()) throw Error(trouble);
  return opened;
}

}  // namespace

// Mappings made by this process, by descriptor: ranks that are threads must see each other's memory at one address. A
// process with thousands of ranks has thousands of them, and looks each of them up as often.
struct SharedMemory::OwnMappings {
  std::shared_mutex mutex;
  std::vector<std::weak_ptr<Mapping>> by_fd;   // the entry of each descriptor; descriptors are small numbers
  std::map<const std::byte*, int> by_address;  // where each begins, and its descriptor

  static OwnMappings& instance() {
    static auto* all = new OwnMappings;  // never destroyed: mappings may outlive static objects
    return *all;
  }

  [[nodiscard]] std::shared_ptr<Mapping> find(int fd) const {
    const auto at = static_cast<std::size_t>(fd);
    return fd >= 0 && at < by_fd.size() ? by_fd[at].lock() : nullptr;
  }
};

SharedMemory::Mapping::~Mapping() {
  // A forked child leaves the list to its parent: a thread that the child does not have may hold the lock. It is taken
  // off the list first, because the next mapping may get the same address and descriptor.
  if (fd >= 0 && process == getpid()) {
    OwnMappings& own = OwnMappings::instance();
    const std::unique_lock lock(own.mutex);
    if (static_cast<std::size_t>(fd) < own.by_fd.size()) own.by_fd[static_cast<std::size_t>(fd)].reset();
    own.by_address.erase(data);
    shared_memory_changes.fetch_add(1, std::memory_order_acq_rel);
  }
  if (data != nullptr) munmap(data, static_cast<std::size_t>(bytes));
  if (fd >= 0) close(fd);
}

SharedMemory SharedMemory::create(std::int64_t bytes, const std::string& what,
                                  const std::function<void(std::int64_t)>& backed) {
  if (bytes > 0) check_available(bytes, what);
  SharedMemory memory = create_unbacked(bytes, what);
  memory.back_pages(what, backed);
  return memory;
}

bool SharedMemory::back(const std::string& what) const {
  if (mapping_->backed) return false;
  check_available(bytes(), what);
  back_pages(what);
  return true;
}

// Backs all pages now, because a shortage would otherwise be a bus error later.
void SharedMemory::back_pages(const std::string& what, const std::function<void(std::int64_t)>& backed) const {
  const std::int64_t at_once = backed ? std::int64_t{64} << 20 : bytes();
  back_huge_pages(fd(), data(), bytes());
  for (std::int64_t at = 0; at < bytes(); at += at_once) {
    const std::int64_t part = std::min(at_once, bytes() - at);
    if (const int failed = back_part(fd(), data(), at, part); failed != 0) {
      throw Error("not enough shared memory for " + what + " (" + base::bytes_text(bytes()) +
                  "): " + std::strerror(failed));
    }
    if (backed) backed(part);
  }
  mapping_->backed = true;
}

SharedMemory SharedMemory::create_unbacked(std::int64_t bytes, const std::string& what) {
  if (bytes < 0) throw BadInput("cannot allocate " + base::counted(bytes, "byte") + " for " + what);
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  if (bytes > no_memory_limit - page)
    throw Error("not enough memory for " + what + ": " + base::bytes_text(bytes) + " requested");
  bytes = std::max(page, (bytes + page - 1) / page * page);
  SharedMemory memory;
  memory.mapping_ = std::make_shared<Mapping>();
  check_file_limit(bytes, what);
  const int fd = make_memory_file(bytes, what);
  memory.mapping_->fd = fd;
  memory.mapping_->process = getpid();
  memory.mapping_->data = map(fd, bytes, what);
  memory.mapping_->bytes = bytes;
  // Listed last, because other threads may find it in the list and expect it to be complete.
  OwnMappings& own = OwnMappings::instance();
  const std::unique_lock lock(own.mutex);
  const auto at = static_cast<std::size_t>(fd);
  if (at >= own.by_fd.size()) own.by_fd.resize(at + 1);
  own.by_fd[at] = memory.mapping_;
  // A forked child has unmapped what its parent had there, and left it on the list.
  own.by_address.erase(own.by_address.lower_bound(memory.data()), own.by_address.lower_bound(memory.data() + bytes));
  own.by_address[memory.data()] = fd;
  shared_memory_changes.fetch_add(1, std::memory_order_acq_rel);
  return memory;
}

SharedMemory SharedMemory::adopt(int fd, std::int64_t least_bytes, const std::string& where, std::uintptr_t low_bits) {
  SharedMemory memory;
  memory.mapping_ = std::make_shared<Mapping>();
  try {
    const std::int64_t bytes = checked_size(fd, least_bytes, where);
    if (low_bits != 0) memory.mapping_->data = map_at(fd, bytes, low_bits, chosen_bits);
    if (memory.mapping_->data == nullptr) memory.mapping_->data = map(fd, bytes, where);
    memory.mapping_->bytes = bytes;
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd);
  return memory;
}

SharedMemory SharedMemory::open(const std::string& path, std::int64_t least_bytes, std::uintptr_t low_bits) {
  int pid = 0;
  int fd = -1;
  int end = 0;
  if (std::sscanf(path.c_str(), "/proc/%d/fd/%d%n", &pid, &fd, &end) != 2 || pid <= 0 || fd < 0 ||
      path.size() != static_cast<std::size_t>(end)) {
    throw Error("expected the memory of a process, '/proc/PID/fd/NUMBER', found '" + path + "'");
  }
  return open(pid, fd, least_bytes, low_bits);
}

SharedMemory SharedMemory::open(pid_t pid, int fd, std::int64_t least_bytes, std::uintptr_t low_bits) {
  if (pid == getpid()) {
    SharedMemory own = own_memory(fd);
    if (own.mapping_ && own.bytes() >= least_bytes) return own;
  }
  const std::string path = path_of(pid, fd);
  return adopt(open_of_process(pid, fd, path, true), least_bytes, path, low_bits);
}

SharedMemory SharedMemory::open_at_once(pid_t pid, int fd, std::int64_t least_bytes) {
  const std::string path = path_of(pid, fd);
  return adopt(open_of_process(pid, fd, path, false), least_bytes, path, 0);
}

SharedMemory SharedMemory::holding(std::span<const std::byte> bytes) {
  OwnMappings& own = OwnMappings::instance();
  SharedMemory found;  // outlives the lock, which ~Mapping of the last handle takes
  const std::shared_lock lock(own.mutex);
  const auto next = own.by_address.upper_bound(bytes.data());
  if (next == own.by_address.begin() || bytes.empty()) return {};
  const auto [begin, fd] = *std::prev(next);
  found.mapping_ = own.find(fd);
  const bool holds = found.data() == begin && bytes.data() + bytes.size() <= found.data() + found.bytes();
  return holds ? found : SharedMemory{};
}

SharedMemory SharedMemory::own_memory(int fd) {
  OwnMappings& own = OwnMappings::instance();
  SharedMemory memory;  // outlives the lock, as in holding()
  const std::shared_lock lock(own.mutex);
  memory.mapping_ = own.find(fd);
  return memory;
}

}  // namespace onehop::detail
