#include "src/base/trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <vector>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/base/output_folder.h"

namespace onehop::trace {
namespace {

constexpr std::size_t events_in_memory = 1 << 16;  // of each thread

// The events of one thread that are not in the file.
struct Buffer {
  explicit Buffer(std::uint32_t number) : thread(number), events(events_in_memory) {}
  std::uint32_t thread;
  std::size_t used = 0;
  std::vector<Event> events;
};

struct State {
  std::mutex mutex;
  std::string name;  // of the file, as the user gave it
  onehop::detail::OutputFolder folder;
  std::string file;  // in that folder
  int rank = 0;
  int ranks = 0;
  int descriptor = -1;
  pid_t process = 0;
  std::map<std::string, std::uint32_t, std::less<>> names;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::int64_t> sent;
};

State& state() {
  static auto* const one = new State;  // threads may record until the end of the process
  return *one;
}

thread_local Buffer* own_buffer = nullptr;

void stop(const std::string& why) noexcept {
  detail::on.store(false, std::memory_order_relaxed);
  std::fprintf(stderr, "onehop: the trace of rank %d ends here: %s; the run goes on\n", state().rank, why.c_str());
}

// Writes all or, after a failure, as if none of it had been written. Call it with the lock.
bool write_block(State& to, detail::Block::Kind kind, std::uint32_t number, std::span<const std::byte> bytes) noexcept {
  if (to.descriptor < 0 || to.process != ::getpid()) return false;
  const off_t begin = ::lseek(to.descriptor, 0, SEEK_CUR);
  const detail::Block block{.kind = kind, .number = number, .bytes = bytes.size()};
  for (std::span<const std::byte> rest : {std::as_bytes(std::span(&block, 1)), bytes}) {
    while (!rest.empty()) {
      const ssize_t written = ::write(to.descriptor, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        const int error = errno;
        static_cast<void>(::ftruncate(to.descriptor, begin) == 0);
        ::close(to.descriptor);
        to.descriptor = -1;
        stop("cannot write " + to.name + ": " + std::strerror(error));
        return false;
      }
      rest = rest.subspan(static_cast<std::size_t>(written));
    }
  }
  return true;
}

void flush(State& to, Buffer& buffer) noexcept {
  const std::span<const Event> events(buffer.events.data(), buffer.used);
  if (!events.empty()) write_block(to, detail::Block::Kind::events, buffer.thread, std::as_bytes(events));
  buffer.used = 0;
}

void end_trace() {
  State& own = state();
  if (own.process != ::getpid()) return;
  detail::on.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard guard(own.mutex);
    for (const auto& buffer : own.buffers) flush(own, *buffer);
    write_block(own, detail::Block::Kind::sent, 0, std::as_bytes(std::span(own.sent)));
    if (own.descriptor >= 0) ::close(own.descriptor);
    own.descriptor = -1;
    const std::string unfinished = detail::file_of_rank(own.file, own.rank, false);
    if (std::rename(unfinished.c_str(), detail::file_of_rank(own.file, own.rank, true).c_str()) != 0) return;
  }
  try {
    detail::merge(own.folder, own.name, true);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onehop: %s\n", error.what());
  }
}

}  // namespace

std::string detail::file_of_rank(const std::string& file, int rank, bool ended) {
  return file + ".rank-" + std::to_string(rank) + (ended ? "" : ".part");
}

int detail::new_file(const std::string& path) noexcept {
  static_cast<void>(::unlink(path.c_str()));
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

bool is_wanted() { return env::text("ONEHOP_TRACE").has_value(); }

void begin(int rank, int ranks, const std::string& machine, double clock_ahead) noexcept {
  State& own = state();
  const std::lock_guard guard(own.mutex);
  if (own.process == ::getpid() || !is_wanted()) return;
  own.process = ::getpid();
  own.name = *env::text("ONEHOP_TRACE");
  own.rank = rank;
  own.ranks = ranks;
  own.sent.assign(static_cast<std::size_t>(ranks), 0);
  const auto refuse = [&own](const std::string& why) { stop("cannot write " + own.name + ": " + why); };
  try {
    const std::filesystem::path file = own.name;
    own.folder = onehop::detail::OutputFolder(file.parent_path());
    own.file = own.folder.file(file.filename());
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
  struct stat found{};
  if (::lstat(own.file.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISLNK(found.st_mode)) {
    return refuse("it is no regular file");
  }
  static_cast<void>(::unlink(detail::file_of_rank(own.file, rank, true).c_str()));
  if (rank == 0) static_cast<void>(::unlink(own.file.c_str()));
  own.descriptor = detail::new_file(detail::file_of_rank(own.file, rank, false));
  if (own.descriptor < 0) return refuse(std::strerror(errno));
  detail::FileHead head{.rank = rank, .ranks = ranks, .clock_ahead = clock_ahead};
  machine.copy(head.machine, sizeof head.machine - 1);
  if (::write(own.descriptor, &head, sizeof head) != static_cast<ssize_t>(sizeof head)) {
    ::close(own.descriptor);
    own.descriptor = -1;
    return refuse(std::strerror(errno));
  }
  std::atexit(end_trace);
  detail::on.store(true, std::memory_order_relaxed);
}

std::uint32_t name_of(std::string_view name) {
  State& own = state();
  const std::lock_guard guard(own.mutex);
  if (const auto found = own.names.find(name); found != own.names.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(own.names.size());
  own.names.emplace(name, number);
  write_block(own, detail::Block::Kind::name, number, std::as_bytes(std::span(name)));
  return number;
}

void record(const Event& event) noexcept {
  if (!is_on()) return;
  if (own_buffer == nullptr) {
    State& own = state();
    const std::lock_guard guard(own.mutex);
    try {
      own_buffer =
          own.buffers.emplace_back(std::make_unique<Buffer>(static_cast<std::uint32_t>(own.buffers.size()))).get();
    } catch (const std::bad_alloc&) {
      return stop("there is not enough memory");
    }
  }
  own_buffer->events[own_buffer->used] = event;
  if (++own_buffer->used < own_buffer->events.size()) return;
  State& own = state();
  const std::lock_guard guard(own.mutex);
  flush(own, *own_buffer);
}

void sent(int peer, std::int64_t bytes) noexcept {
  // Ranks send from one thread at a time; a sum that two threads spoil is a figure in a trace.
  std::vector<std::int64_t>& all = state().sent;
  if (peer >= 0 && static_cast<std::size_t>(peer) < all.size()) all[static_cast<std::size_t>(peer)] += bytes;
}

}  // namespace onehop::trace
