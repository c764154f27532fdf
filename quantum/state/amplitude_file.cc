#include "quantum/state/amplitude_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

constexpr std::size_t largest_transfer = std::size_t{16} << 20;

[[noreturn]] void fail(const std::string& what, const std::string& folder, int code) {
  throw Error(what + " the state in " + folder + " failed: " + std::strerror(code) +
              "; nothing of the run is left there. Check the disk, or take another --state-folder");
}

// Without a name, the file is gone when the process ends, however it ends. It never has one, which another user could
// keep in a folder of theirs, unless the file system knows no such files.
int new_file_in(const std::string& folder, int flags) {
  const int file = open(folder.c_str(), flags | O_TMPFILE | O_EXCL, S_IRUSR | S_IWUSR);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string name = folder + "/onehop-state-XXXXXX";
  const int named = mkostemp(name.data(), flags);
  if (named >= 0) unlink(name.c_str());
  return named;
}

}  // namespace

std::atomic<std::int64_t> AmplitudeFile::transfers_until_error{-1};

DirectMemory direct_memory(std::size_t bytes) {
  return DirectMemory(new (std::align_val_t{AmplitudeFile::unit}) std::byte[bytes]);
}

AmplitudeFile::AmplitudeFile(const std::string& folder, std::int64_t bytes) : folder_(folder) {
  struct statvfs disk = {};
  if (statvfs(folder.c_str(), &disk) != 0) {
    throw BadInput("expected a folder for the state, found '" + folder + "': " + std::strerror(errno));
  }
  const auto left = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  if (left < bytes) {
    throw Error("the state needs " + base::bytes_text(bytes) + " in " + folder + ", which has " +
                base::bytes_text(left) + " left; take another folder, fewer qubits, or a precision of fewer bytes");
  }
  // Some file systems have no direct transfers.
  for (const int direct : {O_DIRECT, 0}) {
    file_ = new_file_in(folder, O_RDWR | O_CLOEXEC | direct);
    if (file_ >= 0 || errno != EINVAL) break;
  }
  if (file_ < 0) {
    throw BadInput("expected a folder in which the state can be written, found '" + folder +
                   "': " + std::strerror(errno));
  }
  if (const int code = posix_fallocate(file_, 0, bytes); code != 0) {
    close(file_);
    fail("reserving " + base::bytes_text(bytes) + " for", folder, code);
  }
}

AmplitudeFile::~AmplitudeFile() { close(file_); }

void AmplitudeFile::transfer(bool writes, std::int64_t place, std::byte* memory, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (under_way_++ == 0) began_ = base::steady_seconds();
  }
  int code = 0;
  for (std::size_t done = 0; done < bytes && code == 0;) {
    const std::size_t next = std::min(bytes - done, largest_transfer);
    const auto at = place + static_cast<std::int64_t>(done);
    const ssize_t moved = writes ? pwrite(file_, memory + done, next, at) : pread(file_, memory + done, next, at);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
    } else if (moved == 0) {
      code = EIO;
    } else if (errno != EINTR) {
      code = errno;
    }
  }
  if (transfers_until_error >= 0 && transfers_until_error.fetch_sub(1) == 0) code = EIO;
  {
    const std::lock_guard lock(mutex_);
    if (--under_way_ == 0) counters_.seconds += base::steady_seconds() - began_;
    (writes ? counters_.bytes_written : counters_.bytes_read) += static_cast<std::int64_t>(bytes);
  }
  if (code != 0) fail(writes ? "writing" : "reading", folder_, code);
}

void AmplitudeFile::read(std::int64_t place, std::span<std::byte> to) { transfer(false, place, to.data(), to.size()); }

void AmplitudeFile::write(std::int64_t place, std::span<const std::byte> from) {
  // pwrite does not change the memory.
  transfer(true, place, const_cast<std::byte*>(from.data()), from.size());  // NOLINT(*-const-cast)
}

DiskCounters AmplitudeFile::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace onehop::quantum
