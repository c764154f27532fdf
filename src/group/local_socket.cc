#include "src/group/local_socket.h"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "onehop/error.h"

namespace onehop::detail {
namespace {

// Room for one descriptor beside the bytes of a message.
union Ancillary {
  cmsghdr header;
  char room[CMSG_SPACE(sizeof(int))];
};

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Socket new_socket() {
  Socket made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.fd() < 0) throw Error(std::string("cannot make a socket: ") + std::strerror(errno));
  return made;
}

SocketName::SocketName(const std::string& name) {
  at.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), sizeof at.sun_path - 1);
  std::memcpy(at.sun_path + 1, name.data(), size);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

bool connect_in_line(const Socket& socket, const SocketName& to, double seconds) {
  const auto microseconds = static_cast<suseconds_t>(1e6 * seconds);
  const timeval limit{microseconds / 1'000'000, microseconds % 1'000'000};
  // The other functions here ask the system for each call not to wait.
  if (setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
      fcntl(socket.fd(), F_SETFL, 0) != 0)
    return false;
  return connect(socket.fd(), to.address(), to.length) == 0;
}

std::optional<SocketPeer> peer_of(const Socket& socket) {
  ucred found{};
  socklen_t size = sizeof found;
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) return std::nullopt;
  return SocketPeer{found.uid, found.pid};
}

bool send_now(const Socket& socket, std::span<const std::byte> bytes, int fd) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Ancillary more{};
  if (fd >= 0) {
    message.msg_control = &more;
    message.msg_controllen = sizeof more;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return sendmsg(socket.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

ssize_t receive_now(const Socket& socket, std::span<std::byte> bytes, Socket* descriptor) {
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Ancillary more{};
  message.msg_control = &more;
  message.msg_controllen = sizeof more;
  const ssize_t got = recvmsg(socket.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : -2;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    // The buffer is meant for one descriptor, but alignment may leave room for two, and a sender may send two.
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(header) + at, sizeof fd);
      Socket received(fd);  // closed here unless it is kept
      if (descriptor != nullptr && descriptor->fd() < 0) *descriptor = std::move(received);
    }
  }
  return got;
}

}  // namespace onehop::detail
