#include "src/group/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/base/text.h"

namespace onehop::detail {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::string_view file_name = "onehop-memory-";

int new_memfd() { return memfd_create("onehop", MFD_CLOEXEC | MFD_ALLOW_SEALING); }

// Whether the system refuses memfd_create to this process, and not only because of a shortage.
bool refuses_memfd(int error) { return error == ENOSYS || error == EPERM || error == EACCES || error == EINVAL; }

bool memfd_is_refused() {
  static const bool refused = [] {
    const int fd = new_memfd();
    const int error = errno;
    if (fd >= 0) close(fd);
    return fd < 0 && refuses_memfd(error);
  }();
  return refused;
}

// Removes the name of a file. A sandbox may refuse one of the two calls.
bool remove_name(const std::string& path) {
  return unlink(path.c_str()) == 0 || unlinkat(AT_FDCWD, path.c_str(), 0) == 0;
}

// A new file without a name that only this user can open; -1 and a reason if the folder has none, or no room for it.
int new_file_in(const std::string& folder, std::int64_t bytes, std::string& reasons) {
  std::string path = folder + "/" + std::string(file_name) + "XXXXXX";
  const auto refused = [&](const std::string& reason) {
    reasons += (reasons.empty() ? "" : ", ") + folder + " (" + reason + ")";
    return -1;
  };
  // A sandbox may refuse to remove files. Then one is made that never has a name, which `onehop status` does
  // not find.
  const bool removes = remove_name(path) || errno == ENOENT;
  const int fd = removes ? mkostemp(path.data(), O_CLOEXEC)
                         : open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return refused(std::strerror(errno));
  if (removes) remove_name(path);
  struct statvfs space{};
  if (fstatvfs(fd, &space) == 0 && space.f_bavail < static_cast<std::uint64_t>(bytes) / std::max(space.f_frsize, 1UL)) {
    close(fd);
    return refused("it has room for " + base::bytes_text(static_cast<std::int64_t>(space.f_bavail * space.f_frsize)));
  }
  return fd;
}

int new_file(std::int64_t bytes, const std::string& what, int memfd_error) {
  const std::array<std::string, 2> folders{"/dev/shm", env::text("TMPDIR").value_or("/tmp")};
  std::string reasons;
  for (const std::string& folder : folders) {
    if (const int fd = new_file_in(folder, bytes, reasons); fd >= 0) return fd;
  }
  throw Error("cannot make " + base::bytes_text(bytes) + " of shared memory for " + what +
              ": the system refuses memfd_create (" + std::strerror(memfd_error) +
              "), and there is no place for a file instead: " + reasons +
              "; allow memfd_create in this sandbox, or give /dev/shm more room (docker run --shm-size)");
}

}  // namespace

int make_memory_file(std::int64_t bytes, const std::string& what) {
  int fd = new_memfd();
  const int error = errno;
  const bool sealed = fd >= 0;
  if (!sealed && !refuses_memfd(error)) {
    throw Error("cannot make shared memory for " + what + ": " + std::strerror(error) +
                (error == EMFILE ? "; close files, or raise `ulimit -n`" : ""));
  }
  if (!sealed) fd = new_file(bytes, what, error);
  std::string trouble;
  if (ftruncate(fd, bytes) != 0) {
    trouble = "cannot make " + base::bytes_text(bytes) + " of shared memory for " + what +
              ": the system refuses ftruncate (" + std::strerror(errno) + ")";
  } else if (sealed && fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) {
    // Without seals any process of this user could shorten it, which would be a bus error for readers of the rest.
    trouble = "cannot seal shared memory for " + what + ": the system refuses fcntl (" + std::strerror(errno) + ")";
  }
  if (trouble.empty()) return fd;
  close(fd);
  throw Error(trouble);
}

bool has_fixed_size(int fd, const struct stat& status) {
  const int found = fcntl(fd, F_GET_SEALS);
  if (found > 0 && (found & seals) == seals) return true;
  constexpr mode_t of_others = 077;
  return status.st_nlink == 0 && (status.st_mode & of_others) == 0 && memfd_is_refused();
}

bool is_memory_file(std::string_view link) {
  if (link.starts_with("/memfd:onehop")) return true;
  return link.ends_with(" (deleted)") && link.find("/" + std::string(file_name)) != std::string_view::npos;
}

}  // namespace onehop::detail
