#include "quantum/state/amplitude_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

constexpr std::size_t largest_transfer = std::size_t{16} << 20;

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

// Some file systems have no direct transfers.
template <typename Open>
int open_direct(const Open& open_with) {
  const int file = open_with(O_DIRECT | O_CLOEXEC);
  return file >= 0 || errno != EINVAL ? file : open_with(O_CLOEXEC);
}

}  // namespace

std::atomic<std::int64_t> AmplitudeFile::transfers_until_error{-1};

DirectMemory direct_memory(std::size_t bytes) {
  return DirectMemory(new (std::align_val_t{AmplitudeFile::unit}) std::byte[bytes]);
}

void AmplitudeFile::fail(const std::string& what, int code) const {
  throw Error(what + " the state in " + folder_ + " failed: " + std::strerror(code) +
              (name_.empty() ? "; nothing of the run is left there. Check the disk, or take another --state-folder"
                             : "; the last checkpoint stays. Check the disk, and run again"));
}

AmplitudeFile::AmplitudeFile(const StateOptions& options, std::int64_t bytes)
    : folder_(options.folder),
      place_(options.folder),
      name_(options.file),
      bytes_(bytes),
      number_(options.kept == 0 ? 1 : 0) {
  for (int number = 0; number < 2 && !name_.empty(); ++number) {  // what a run has left that was killed
    if (number != options.kept) unlink(path(number).c_str());
  }
  struct statvfs disk = {};
  if (statvfs(place_.file(".").c_str(), &disk) != 0) {
    throw BadInput("expected a folder for the state, found '" + folder_ + "': " + std::strerror(errno));
  }
  const auto left = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  const std::int64_t needed = name_.empty() || options.kept >= 0 ? bytes : 2 * bytes;
  if (left < needed) {
    throw Error("the state needs " + base::bytes_text(needed) + " in " + folder_ + ", which has " +
                base::bytes_text(left) + " left; take another folder, fewer qubits, or a precision of fewer bytes");
  }
  file_ = make_file();
}

int AmplitudeFile::make_file() const {
  const int file = open_direct([&](int flags) {
    if (!name_.empty()) {
      unlink(path(number_).c_str());
      return open(path(number_).c_str(), O_RDWR | O_CREAT | O_EXCL | flags, S_IRUSR | S_IWUSR);
    }
    return new_file_in(place_.file("."), O_RDWR | flags);
  });
  if (file < 0) {
    throw BadInput("expected a folder in which the state can be written, found '" + folder_ +
                   "': " + std::strerror(errno));
  }
  if (const int code = posix_fallocate(file, 0, bytes_); code != 0) {
    close(file);
    if (!name_.empty()) unlink(path(number_).c_str());
    fail("reserving " + base::bytes_text(bytes_) + " for", code);
  }
  return file;
}

AmplitudeFile::~AmplitudeFile() {
  if (!stays_ && has_name()) unlink(path(number_).c_str());
  close(file_);
  if (kept_ >= 0) close(kept_);
}

// Whether the file has its name still: another run of the same checkpoint takes it.
bool AmplitudeFile::has_name() const {
  struct stat mine = {};
  struct stat named = {};
  return !name_.empty() && fstat(file_, &mine) == 0 && lstat(path(number_).c_str(), &named) == 0 &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

void AmplitudeFile::adopt() {
  const std::string other = path(1 - number_);
  kept_ = open_direct([&](int flags) { return open(other.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | flags); });
  struct stat found = {};
  if (kept_ < 0 || fstat(kept_, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size < bytes_) {
    throw BadInput("expected the " + base::bytes_text(bytes_) + " of a checkpoint's state in " + name(1 - number_) +
                   ", found " + (kept_ < 0 ? std::strerror(errno) : "a shorter file or none"));
  }
  fresh_.assign(static_cast<std::size_t>(bytes_) / unit, 0);
}

void AmplitudeFile::complete() {
  const DirectMemory memory = direct_memory(largest_transfer);
  constexpr auto step = static_cast<std::int64_t>(largest_transfer);
  for (std::int64_t place = 0; place < bytes_ && kept_ >= 0; place += step) {
    const std::span piece(memory.get(), static_cast<std::size_t>(std::min(step, bytes_ - place)));
    const auto units = std::span(fresh_).subspan(static_cast<std::size_t>(place) / unit, piece.size() / unit);
    if (std::ranges::find(units, 0) == units.end()) continue;
    read(place, piece);
    write(place, piece);
  }
  const int folder = open(place_.file(".").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = fsync(file_) == 0 && (folder < 0 || fsync(folder) == 0);
  const int code = errno;
  if (folder >= 0) close(folder);
  if (!done) fail("writing", code);
  if (!has_name()) throw Error("another run, or a user, has removed " + name(number_) + ", which held the state");
  stays_ = true;
}

void AmplitudeFile::turn() {
  if (kept_ >= 0) close(std::exchange(kept_, -1));  // its room is for the next file
  number_ = 1 - number_;
  int next = -1;
  try {
    next = make_file();
  } catch (...) {
    number_ = 1 - number_;
    throw;
  }
  kept_ = std::exchange(file_, next);
  fresh_.assign(static_cast<std::size_t>(bytes_) / unit, 0);
  stays_ = false;
}

void AmplitudeFile::transfer(bool writes, std::int64_t place, std::byte* memory, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (under_way_++ == 0) began_ = base::steady_seconds();
  }
  const bool divided = kept_ >= 0;
  const auto units = divided ? std::span(fresh_).subspan(static_cast<std::size_t>(place) / unit, bytes / unit)
                             : std::span<std::uint8_t>();
  int code = 0;
  for (std::size_t done = 0; done < bytes && code == 0;) {
    std::size_t next = std::min(bytes - done, largest_transfer);
    int from = file_;
    if (divided && !writes) {  // up to where the other file has the amplitudes
      const auto rest = units.subspan(done / unit);
      if (rest.front() == 0) from = kept_;
      const auto end = std::ranges::find(rest, static_cast<std::uint8_t>(1 - rest.front()));
      next = std::min(next, static_cast<std::size_t>(end - rest.begin()) * unit - done % unit);
    }
    const auto at = place + static_cast<std::int64_t>(done);
    const ssize_t moved = writes ? pwrite(file_, memory + done, next, at) : pread(from, memory + done, next, at);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
    } else if (moved == 0) {
      code = EIO;
    } else if (errno != EINTR) {
      code = errno;
    }
  }
  if (writes && code == 0) std::ranges::fill(units, std::uint8_t{1});
  if (transfers_until_error >= 0 && transfers_until_error.fetch_sub(1) == 0) code = EIO;
  {
    const std::lock_guard lock(mutex_);
    if (--under_way_ == 0) counters_.seconds += base::steady_seconds() - began_;
    (writes ? counters_.bytes_written : counters_.bytes_read) += static_cast<std::int64_t>(bytes);
  }
  if (code != 0) fail(writes ? "writing" : "reading", code);
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
