// Unix sockets with abstract names between processes of one user. The kernel identifies the process at the other end,
// and a message can carry a file descriptor.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace onehop::detail {

// Owns a descriptor.
class Socket {
 public:
  explicit Socket(int fd = -1) noexcept : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Makes a Unix stream socket that never blocks. Throws Error.
[[nodiscard]] Socket new_socket();

// An abstract name: it is in no folder and disappears with its process. Any user may bind it, and all users see it in
// /proc/net/unix.
struct SocketName {
  explicit SocketName(const std::string& name);
  [[nodiscard]] const sockaddr* address() const noexcept { return reinterpret_cast<const sockaddr*>(&at); }
  sockaddr_un at{};
  socklen_t length = 0;
};

// Connects, and waits at most `seconds` for room in the queue of the listener. If it returns false, errno has the
// reason, EAGAIN if there was no room.
[[nodiscard]] bool connect_in_line(const Socket& socket, const SocketName& to, double seconds);

// The user and process at the other end, as the kernel noted them when it connected (or, of a listener, began to
// listen).
struct SocketPeer {
  uid_t uid = 0;
  pid_t pid = 0;
};
[[nodiscard]] std::optional<SocketPeer> peer_of(const Socket& socket);

// Sends all of `bytes`, with a copy of descriptor `fd` unless that is -1, without waiting. Returns false if that is not
// possible.
[[nodiscard]] bool send_now(const Socket& socket, std::span<const std::byte> bytes, int fd = -1);

// Receives up to bytes.size() bytes without waiting, and the descriptor sent with them. Returns the number of bytes; 0:
// the other end has closed; -1: nothing has arrived yet; -2: the connection is broken.
[[nodiscard]] ssize_t receive_now(const Socket& socket, std::span<std::byte> bytes, Socket* descriptor = nullptr);

}  // namespace onehop::detail
