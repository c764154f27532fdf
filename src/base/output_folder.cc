#include "src/base/output_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <utility>

#include "onehop/error.h"

namespace onehop::detail {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as many as Linux follows

// Whether another user may have put the link into the folder to mislead this one.
bool is_trap(const struct stat& link, const struct stat& folder) {
  const uid_t user = ::geteuid();
  const auto is_strange = [user](uid_t other) { return other != 0 && other != user; };
  const bool is_open = (folder.st_mode & S_IWOTH) != 0;
  return (is_open && (folder.st_mode & S_ISVTX) == 0) ||
         ((is_open || user == 0) && (is_strange(link.st_uid) || is_strange(folder.st_uid)));
}

int open_step(int folder, const fs::path& step) {
  constexpr int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  const int opened = ::openat(folder, step.c_str(), flags | O_DIRECTORY);  // also mounts what is mounted on demand
  return opened >= 0 || errno != ENOTDIR ? opened : ::openat(folder, step.c_str(), flags);
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& path) {
  std::deque<fs::path> steps(path.begin(), path.end());
  steps.emplace_front(".");
  steps.emplace_back(".");  // so that the last step is a folder
  OutputFolder reached;
  reached.descriptor_ = AT_FDCWD;
  const auto refuse = [&](const std::string& why) {
    throw BadInput("expected a folder, found '" + path.string() + "': " + why);
  };
  for (int links = 0; !steps.empty();) {
    const fs::path step = std::exchange(steps.front(), {});
    steps.pop_front();
    if (step.empty()) continue;
    OutputFolder next;
    next.descriptor_ = open_step(reached.descriptor_, step);
    struct stat found{};
    if (next.descriptor_ < 0 || ::fstat(next.descriptor_, &found) != 0) refuse(std::strerror(errno));
    if (!S_ISLNK(found.st_mode)) {
      reached = std::move(next);
      continue;
    }
    struct stat folder{};
    if (::fstat(reached.descriptor_, &folder) != 0) refuse(std::strerror(errno));
    if (is_trap(found, folder)) {
      std::error_code error;
      const fs::path where = fs::read_symlink("/proc/self/fd/" + std::to_string(reached.descriptor_), error);
      refuse("another user may have put the link " + (where / step).string() + " there");
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(next.descriptor_, "", target.data(), target.size());
    if (length < 0 || ++links > most_links) refuse(std::strerror(length < 0 ? errno : ELOOP));
    const fs::path behind(std::string(target.data(), static_cast<std::size_t>(length)));
    steps.insert(steps.begin(), behind.begin(), behind.end());
  }
  *this = std::move(reached);
}

OutputFolder::~OutputFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFolder& OutputFolder::operator=(OutputFolder&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

std::string OutputFolder::file(const std::string& name) const {
  return "/proc/self/fd/" + std::to_string(descriptor_) + "/" + name;
}

}  // namespace onehop::detail
