#include "src/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace onehop::detail {

namespace {

FileText failed(int error) {
  return {std::nullopt, "it cannot be read: " + std::system_category().message(error), error == ENOENT};
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

FileText read_all(int file, std::size_t longest) {
  std::string text(std::min<std::size_t>(longest + 1, 1 << 16), '\0');
  std::size_t length = 0;
  for (;;) {
    const ssize_t got = read(file, text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
    if (length > longest) {
      return {std::nullopt, "expected at most " + std::to_string(longest) + " bytes, found more", false};
    }
    if (length == text.size()) text.resize(std::min(2 * length, longest + 1));
  }
  text.resize(length);
  return {std::move(text), {}, false};
}

}  // namespace

FileText read_regular_file(const std::string& path, std::size_t longest) {
  // Opening a device may have side effects, and opening a FIFO waits for a writer, so neither is opened.
  struct stat about{};
  if (stat(path.c_str(), &about) != 0) return failed(errno);
  const auto refused = [&] {
    return FileText{std::nullopt, std::string("expected a file, found ") + kind_of(about.st_mode), false};
  };
  if (!S_ISREG(about.st_mode)) return refused();
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return failed(errno);
  FileText found = fstat(file, &about) == 0 && S_ISREG(about.st_mode) ? read_all(file, longest) : refused();
  close(file);
  return found;
}

}  // namespace onehop::detail
