// Ranks that cannot tell their machines apart: the same boot, the same process number, the same descriptors.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/group.h"

namespace onehop {
namespace {

constexpr int no_namespaces = 77;

void write_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(socket, bytes.data(), bytes.size());
    if (written <= 0) throw Error("the other rank is gone");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void read_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t read = ::read(socket, bytes.data(), bytes.size());
    if (read <= 0) throw Error("the other rank is gone");
    bytes = bytes.subspan(static_cast<std::size_t>(read));
  }
}

// An all-gather of two ranks over a socket, for messages so short that the socket buffers them.
Gathered gather(int socket, int rank, std::span<const std::byte> mine) {
  const std::uint64_t length = mine.size();
  write_all(socket, std::as_bytes(std::span(&length, 1)));
  write_all(socket, mine);
  std::uint64_t other_length = 0;
  read_all(socket, std::as_writable_bytes(std::span(&other_length, 1)));
  std::vector<std::byte> other(other_length);
  read_all(socket, other);
  std::vector<std::vector<std::byte>> all(2);
  all[static_cast<std::size_t>(rank)].assign(mine.begin(), mine.end());
  all[static_cast<std::size_t>(1 - rank)] = std::move(other);
  return all;
}

// Returns 0 if all is as expected.
int be_rank(int socket, int rank) {
  if (getpid() != 1) return 2;
  setenv("ONEHOP_TEST_HOST", "the same", 1);
  const Group group =
      Group::from_allgather(rank, 2, [&](std::span<const std::byte> mine) { return gather(socket, rank, mine); });
  if (group.shares_memory(1 - rank) || !group.shares_memory(rank)) return 3;
  const ChannelSpec spec{.direction = ChannelSpec::Direction::send, .peer = 1 - rank, .bytes = 8};
  try {
    static_cast<void>(open_channels(group, {&spec, 1}, TransportKind::shared_memory));
  } catch (const Error& error) {
    return std::string(error.what()).find("copy of this machine") != std::string::npos ? 0 : 4;
  }
  return 5;
}

// Makes a process whose next child has process number 1, as in a container.
int run_in_namespace(int socket, int rank) {
  if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return no_namespaces;
  const pid_t child = fork();
  if (child == 0) {
    int code = 6;
    try {
      code = be_rank(socket, rank);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    }
    _exit(code);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 7;
  return WEXITSTATUS(status);
}

TEST(GroupMachines, WithEqualNumbersDoNotMistakeTheirOwnPageForThePeers) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  std::array<pid_t, 2> ranks{};
  for (int r = 0; r < 2; ++r) {
    ranks.at(static_cast<std::size_t>(r)) = fork();
    if (ranks.at(static_cast<std::size_t>(r)) == 0) {
      alarm(20);
      _exit(run_in_namespace(sockets.at(static_cast<std::size_t>(r)), r));
    }
  }
  for (const int socket : sockets) close(socket);
  std::array<int, 2> codes{};
  for (std::size_t r = 0; r < 2; ++r) {
    int status = 0;
    ASSERT_EQ(waitpid(ranks.at(r), &status, 0), ranks.at(r));
    ASSERT_TRUE(WIFEXITED(status));
    codes.at(r) = WEXITSTATUS(status);
  }
  if (codes[0] == no_namespaces && codes[1] == no_namespaces) {
    GTEST_SKIP() << "this user may not make PID namespaces";
  }
  // 3: the peer's page was wrongly taken as mapped.
  EXPECT_EQ(codes[0], 0);
  EXPECT_EQ(codes[1], 0);
}

}  // namespace
}  // namespace onehop
