#include "compat/rdma_comlib/shared_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "src/base/env.h"

namespace onehop::compat::rdma_comlib {
namespace {

bool is_wanted() { return env::number("ONEHOP_SHARE_BUFFERS") != 0.0; }

// Whether all pages are private memory that no file backs, such as the heap, and not another library's shared memory.
bool is_ordinary(std::span<const std::byte> pages) {
  auto at = reinterpret_cast<std::uintptr_t>(pages.data());
  const std::uintptr_t end = at + pages.size();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; at < end && std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uintptr_t first = 0;
    std::uintptr_t behind = 0;
    char dash = 0;
    std::string rights;
    std::string offset;
    std::string device;
    std::uint64_t file = 0;
    fields >> std::hex >> first >> dash >> behind >> rights >> offset >> device >> std::dec >> file;
    if (behind <= at) continue;
    if (first > at || file != 0 || !rights.starts_with("rw") || rights.size() < 4 || rights[3] != 'p') return false;
    at = behind;
  }
  return at >= end;
}

// Whether a peer's file is as SharedPages makes it: this user's, at least this large, and sealed against resizing.
bool is_trusted(int fd, std::size_t bytes) {
  constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  struct stat status{};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) return false;
  const int found = fcntl(fd, F_GET_SEALS);
  return found >= 0 && (found & seals) == seals && static_cast<std::size_t>(status.st_size) >= bytes;
}

std::byte* map(void* where, std::size_t bytes, int flags, int fd) {
  void* const found = mmap(where, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  return found == MAP_FAILED ? nullptr : static_cast<std::byte*>(found);
}

}  // namespace

SharedPages::SharedPages(std::span<std::byte> buffer) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.data());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t behind = (begin + buffer.size()) / page * page;
  if (behind <= first || !is_wanted()) return;
  const std::span<std::byte> pages = buffer.subspan(first - begin, behind - first);
  if (!is_ordinary(pages)) return;
  const int fd = memfd_create("onehop receive buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return;
  // Filled before it replaces the pages, so that their contents are present at all times.
  const bool sized = ftruncate(fd, static_cast<off_t>(pages.size())) == 0 &&
                     fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  std::byte* const copy = sized ? map(nullptr, pages.size(), MAP_SHARED, fd) : nullptr;
  if (copy != nullptr) {
    std::memcpy(copy, pages.data(), pages.size());
    munmap(copy, pages.size());
    pages_ = map(pages.data(), pages.size(), MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd);
  }
  place_ = {getpid(), fd, first - begin, pages_ == nullptr ? 0 : pages.size()};
  if (pages_ == nullptr) close_file();
}

SharedPages::~SharedPages() {
  close_file();
  if (pages_ == nullptr) return;
  // Filled before it replaces the pages. If memory is short, they stay shared, which is safe: the source unmaps them.
  std::byte* const own = map(nullptr, place_.bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (own == nullptr) return;
  std::memcpy(own, pages_, place_.bytes);
  if (mremap(own, place_.bytes, place_.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pages_) == MAP_FAILED)
    munmap(own, place_.bytes);
}

SharedPages::SharedPages(SharedPages&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)), place_(std::exchange(other.place_, {})) {}

SharedPages& SharedPages::operator=(SharedPages&& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(place_, other.place_);
  return *this;
}

void SharedPages::close_file() noexcept {
  if (place_.fd >= 0) close(std::exchange(place_.fd, -1));
}

PeersPages::PeersPages(const PagesPlace& place) {
  if (place.bytes == 0) return;
  const std::string path = "/proc/" + std::to_string(place.pid) + "/fd/" + std::to_string(place.fd);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return;
  if (is_trusted(fd, place.bytes)) {
    pages_ = {map(nullptr, place.bytes, MAP_SHARED | MAP_POPULATE, fd), Unmap{place.bytes}};
  }
  close(fd);
  at_ = place.at;
}

void Unmap::operator()(std::byte* pages) const noexcept { munmap(pages, bytes); }

}  // namespace onehop::compat::rdma_comlib
