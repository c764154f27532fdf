#include "onehop/status.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/group/memory_file.h"
#include "src/group/rank_page.h"

namespace onehop {
namespace {

using detail::RankPage;

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { closedir(folder); }
};

// The page of a rank of another process, mapped for reading only.
class ForeignPage {
 public:
  // Maps the file if it is memory of onehop of the size of a page. Anything else has no data.
  explicit ForeignPage(int file) {
    struct stat status{};
    const auto least = static_cast<off_t>(sizeof(RankPage));
    const auto most = static_cast<off_t>(bytes());
    // A file that can be shortened would be a bus error here.
    if (fstat(file, &status) == 0 && detail::has_fixed_size(file, status) && status.st_size >= least &&
        status.st_size <= most) {
      void* const at = mmap(nullptr, bytes(), PROT_READ, MAP_SHARED, file, 0);
      if (at != MAP_FAILED) data_ = at;
    }
    close(file);
  }
  ~ForeignPage() {
    if (data_ != nullptr) munmap(data_, bytes());
  }
  ForeignPage(const ForeignPage&) = delete;
  ForeignPage& operator=(const ForeignPage&) = delete;

  // Null if it is no page of this version of onehop.
  [[nodiscard]] const RankPage* get() const noexcept {
    const auto* const page = static_cast<const RankPage*>(data_);
    if (page == nullptr || page->mark.load(std::memory_order_acquire) != RankPage::status_mark) return nullptr;
    return page;
  }

 private:
  static std::size_t bytes() noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (sizeof(RankPage) + page - 1) / page * page;
  }
  void* data_ = nullptr;
};

// Opens a descriptor of another process if it is memory of onehop: the text of the link is read first, because opening
// a FIFO or a device could have effects.
std::optional<int> open_memory(int folder, const char* name) {
  std::array<char, 256> text{};
  const ssize_t length = readlinkat(folder, name, text.data(), text.size());
  if (length <= 0 || !detail::is_memory_file({text.data(), static_cast<std::size_t>(length)})) return std::nullopt;
  const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return file < 0 ? std::nullopt : std::optional(file);
}

RankStatus read_page(const RankPage& page) {
  RankStatus status;
  status.rank = page.rank.load(std::memory_order_relaxed);
  status.size = page.size.load(std::memory_order_relaxed);
  status.group = page.group_word.load(std::memory_order_relaxed);
  status.steps = page.steps.load(std::memory_order_relaxed);
  status.left = page.left.load(std::memory_order_acquire) != 0;
  status.reported_lost = static_cast<int>(page.reported_lost.load(std::memory_order_acquire)) - 1;
  const double now = base::steady_seconds();
  for (const detail::WaitRecord& record : page.waits) {
    const auto seen = record.read();
    if (seen) status.waits.push_back({seen->peer, seen->peer_is, seen->what, std::max(0.0, now - seen->since)});
  }
  for (const detail::DeviceName& device : page.down) {
    if (std::string name = device.read(); !name.empty()) status.down.push_back(std::move(name));
  }
  return status;
}

[[noreturn]] void throw_unreadable(pid_t process, int error) {
  const std::string name = "process " + std::to_string(process);
  if (error == ENOENT || error == ESRCH) throw Error("there is no " + name + " on this machine or in this container");
  struct stat owner{};
  const std::string folder = "/proc/" + std::to_string(process);
  if ((error == EACCES || error == EPERM) && stat(folder.c_str(), &owner) == 0) {
    throw Error(name + " belongs to user " + std::to_string(owner.st_uid) + " or is protected, and this is user " +
                std::to_string(geteuid()) + ", who may not examine it; ask as its user or as root");
  }
  throw Error("cannot examine " + name + ": " + std::strerror(error));
}

}  // namespace

std::vector<RankStatus> status_of_process(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd";
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (folder == nullptr) throw_unreadable(process, errno);
  std::vector<RankStatus> found;
  std::vector<std::pair<dev_t, ino_t>> seen;  // a page may have several descriptors
  while (const dirent* entry = readdir(folder.get())) {
    const std::optional<int> file = open_memory(dirfd(folder.get()), entry->d_name);
    if (!file) continue;
    struct stat status{};
    fstat(*file, &status);
    const ForeignPage page(*file);
    const std::pair identity{status.st_dev, status.st_ino};
    if (page.get() == nullptr || std::ranges::find(seen, identity) != seen.end()) continue;
    seen.push_back(identity);
    found.push_back(read_page(*page.get()));
  }
  return found;
}

}  // namespace onehop
