#include "rendezvous.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "control_memory.h"
#include "liveness.h"
#include "onehop/error.h"

namespace onehop::detail {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

// An abstract name (it starts with a zero byte) is in no folder and ends with its process.
std::pair<sockaddr_un, socklen_t> address(const std::string& key) {
  std::string name = "onehop-" + std::to_string(geteuid()) + "-" + key;
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (name.size() > sizeof at.sun_path - 1) {
    name = name.substr(0, 40) + "-" + std::to_string(std::hash<std::string>{}(name));
  }
  std::memcpy(at.sun_path + 1, name.data(), name.size());
  return {at, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

double meeting_limit() {
  const double limit = default_timeout();
  return limit > 0 ? limit : 60;
}

[[noreturn]] void throw_alone(int rank, int ranks, const std::string& found) {
  throw Error("the launcher says that this is rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
              ", but " + found +
              "; are all ranks on this machine and do all call Group::world()? For several machines use MPI (mpiexec, "
              "srun --mpi)");
}

// Tells every other rank the path, then waits until they have all joined (their first all-gather does that).
void hand_out(const Socket& door, const std::string& path, int ranks) {
  Deadline deadline(0);
  for (int told = 0; told < ranks - 1;) {
    call_interrupt_check();
    pollfd look{door.fd(), POLLIN, 0};
    if (poll(&look, 1, 50) > 0) {
      const Socket guest(accept4(door.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (guest.fd() >= 0 &&
          send(guest.fd(), path.data(), path.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(path.size()))
        ++told;
    }
    if (told < ranks - 1 && deadline.seconds() > meeting_limit()) {
      throw_alone(0, ranks,
                  "only " + std::to_string(told) + " of the other " + std::to_string(ranks - 1) + " have come");
    }
  }
}

std::string ask(const std::string& key, int rank, int ranks) {
  const auto [at, length] = address(key);
  Deadline deadline(0);
  for (;;) {
    call_interrupt_check();
    const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&at), length) == 0) {
      char path[256];
      const ssize_t got = read(socket.fd(), path, sizeof path);
      if (got > 0) return {path, static_cast<std::size_t>(got)};
    }
    if (deadline.seconds() > meeting_limit()) throw_alone(rank, ranks, "rank 0 was not found");
    const timespec nap{0, 10'000'000};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace

std::unique_ptr<Bootstrap> meet(const std::string& key, int rank, int ranks) {
  if (rank != 0) {
    auto bootstrap = join_control_memory(ask(key, rank, ranks), rank, ranks, 0);
    static_cast<void>(bootstrap->allgather({}));
    return bootstrap;
  }
  const Socket door(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto [at, length] = address(key);
  if (bind(door.fd(), reinterpret_cast<const sockaddr*>(&at), length) != 0 || listen(door.fd(), 1024) != 0) {
    throw Error(std::string("rank 0 cannot open the meeting point of this launch: ") + std::strerror(errno) +
                "; is another rank 0 of the same launch running, or was Group::world() called twice?");
  }
  ControlMemory control = ControlMemory::create(ranks);
  auto bootstrap = join_control_memory(control.path(), 0, ranks, 0);
  hand_out(door, control.path(), ranks);
  // Everybody has mapped the memory once this returns; until then it must be open here.
  static_cast<void>(bootstrap->allgather({}));
  return bootstrap;
}

}  // namespace onehop::detail
