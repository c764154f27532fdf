// Attacks on ranks that meet: by another user of the machine, by a connection that is not a rank, and by memory that
// no correct rank makes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "src/base/sha256.h"
#include "src/group/control_memory.h"
#include "src/group/group_state.h"
#include "src/group/local_socket.h"
#include "src/group/rendezvous.h"
#include "src/group/shared_memory.h"
#include "tests/support/faults.h"
#include "tests/support/meeting.h"

namespace onehop {
namespace {

using detail::new_socket;
using detail::SharedMemory;
using detail::Socket;
using detail::SocketName;
using testing::Child;
using testing::connect_and_say;
using testing::has;
using testing::key_of_test;
using testing::meet_as;
using testing::meeting_point;
using testing::nap;
using testing::other_user;

bool bind_and_listen(const Socket& listener, const std::string& name) {
  const SocketName at(name);
  return bind(listener.fd(), at.address(), at.length) == 0 && listen(listener.fd(), 8) == 0;
}

TEST(Digest, IsSha256) {
  EXPECT_EQ(detail::sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(detail::sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(detail::sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// -- another user ------------------------------------------------------------------------------------------------

class OtherUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "acting as another user needs root";
  }
};

TEST_F(OtherUser, WhoTakesTheNameIsNamedAndNothingIsReadFromHim) {
  for (const bool listens : {true, false}) {
    const std::string key = key_of_test() + (listens ? ".listens" : ".silent");
    const Socket listener = new_socket();
    const SocketName at(meeting_point(key));  // the name contains the victim's user
    const Child squatter(other_user, [&] {
      if (bind(listener.fd(), at.address(), at.length) != 0 || (listens && listen(listener.fd(), 8) != 0)) _exit(1);
    });
    ASSERT_TRUE(squatter.good());
    const auto said = meet_as({0, 1}, 2, key, "1");
    EXPECT_TRUE(has(said[0], listens ? "held by user 65534" : "accepts no connections")) << said[0];
    EXPECT_TRUE(has(said[1], listens ? "held by user 65534" : "rank 0 was not found")) << said[1];
  }
}

TEST_F(OtherUser, AConnectionOfHisTakesNobodysPlace) {
  const std::string key = key_of_test();
  const std::string name = meeting_point(key);
  std::unique_ptr<Child> stranger;
  // The other user sends the greeting of a rank.
  const auto said = meet_as({0}, 2, key, "2", [&] {
    stranger = std::make_unique<Child>(other_user, [&] {
      const std::array<std::int32_t, 4> hello = {0x65'68'6f'31, 0x31'6f'6c'6c, 1, 2};
      std::string bytes(sizeof hello, '\0');
      std::memcpy(bytes.data(), hello.data(), sizeof hello);
      if (connect_and_say(name, bytes).release() < 0) _exit(1);
    });
  });
  ASSERT_TRUE(stranger->good());
  EXPECT_TRUE(has(said[0], "only 0 of the other 1 have joined")) << said[0];
  EXPECT_TRUE(has(said[0], "a connection of user 65534 was refused")) << said[0];
  // The real ranks still meet.
  const std::string again = key + ".again";
  const std::string name_again = meeting_point(again);
  std::unique_ptr<Child> other;
  std::vector<std::string> guest;
  const auto met = meet_as({0}, 2, again, "20", [&] {
    other = std::make_unique<Child>(other_user, [&] {
      for (int times = 0; times < 20; ++times) static_cast<void>(connect_and_say(name_again, "x").release());
    });
    guest = meet_as({1}, 2, again, "20");
  });
  EXPECT_EQ(met, std::vector<std::string>{"met"});
  EXPECT_EQ(guest, std::vector<std::string>{"met"});
}

// Processes of the other user that connect without pause. Rank 0 turns them away; its limit still holds, and ranks
// meet.
TEST_F(OtherUser, WhoConnectsWithoutPauseStopsNobody) {
  const std::string key = key_of_test();
  const SocketName at(meeting_point(key));
  const Child floods(other_user, [&] {
    for (int flood = 0; flood < 5; ++flood) {
      if (fork() != 0) continue;
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) _exit(1);
      for (;;) {
        const Socket socket = new_socket();
        static_cast<void>(connect(socket.fd(), at.address(), at.length));
      }
    }
  });
  ASSERT_TRUE(floods.good());
  const auto alone = meet_as({0}, 2, key, "1");
  EXPECT_TRUE(has(alone[0], "only 0 of the other 1 have joined")) << alone[0];
  EXPECT_TRUE(has(alone[0], "a connection of user 65534 was refused")) << alone[0];
  EXPECT_EQ(meet_as({0, 1, 2, 3}, 4, key, "30"), std::vector<std::string>(4, "met"));
}

TEST_F(OtherUser, HisMemoryIsNotMapped) {
  const Child owner(other_user, [] {
    const int fd = memfd_create("onehop", MFD_ALLOW_SEALING);
    if (ftruncate(fd, 1 << 20) != 0 || dup2(fd, 100) != 100) _exit(1);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) _exit(1);
  });
  ASSERT_TRUE(owner.good());
  // Root could open it. A process that changed its user appears as root's, so the memory itself is checked too.
  try {
    static_cast<void>(SharedMemory::open(owner.pid(), 100, 1));
    FAIL() << "memory of user 65534 was mapped";
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "belongs to user 65534")) << error.what();
  }
}

// -- this user, but no honest rank --------------------------------------------------------------------------------

TEST(Meeting, ConnectionsThatAreNoRanksTakeNobodysPlace) {
  const std::string key = key_of_test();
  std::vector<Socket> strays;
  std::vector<std::string> others;
  const auto said = meet_as({0}, 3, key, "30", [&] {
    for (const char* words : {"", "GET / HTTP/1.1\r\n\r\n", "x", "1hello and so on and on and on"}) {
      strays.push_back(connect_and_say(meeting_point(key), words));
      ASSERT_GE(strays.back().fd(), 0);
    }
    others = meet_as({1, 2}, 3, key, "30");
  });
  EXPECT_EQ(said, std::vector<std::string>{"met"});
  EXPECT_EQ(others, (std::vector<std::string>{"met", "met"}));
}

// Each is disconnected after five seconds, so many that are waited for in turn would spend the time limit.
TEST(Meeting, SilentConnectionsDelayNobody) {
  const std::string key = key_of_test();
  std::vector<Socket> silent;
  std::vector<std::string> other;
  const auto said = meet_as({0}, 2, key, "20", [&] {
    for (int i = 0; i < 700; ++i) silent.push_back(connect_and_say(meeting_point(key), ""));
    other = meet_as({1}, 2, key, "20");
  });
  EXPECT_EQ(said, std::vector<std::string>{"met"});
  EXPECT_EQ(other, std::vector<std::string>{"met"});
}

TEST(Meeting, ARankIsServedOnce) {
  const auto said = meet_as({0, 1, 1, 2}, 3, key_of_test(), "8");
  EXPECT_EQ(said[0] + said[3], "metmet");
  EXPECT_TRUE((said[1] == "met") != (said[2] == "met")) << said[1] << " | " << said[2];
  const std::string& refused = said[1] == "met" ? said[2] : said[1];
  EXPECT_TRUE(has(refused, "already taken") || has(refused, "rank 0 was not found")) << refused;
}

TEST(Meeting, AnotherNumberOfRanksIsToldSo) {
  const std::string key = key_of_test();
  std::vector<std::string> other;
  const auto said = meet_as({0}, 2, key, "2", [&] { other = meet_as({1}, 3, key, "2"); });
  EXPECT_TRUE(has(other[0], "belongs to a launch of 2 ranks")) << other[0];
  EXPECT_TRUE(has(said[0], "not rank 1")) << said[0];
}

TEST(Meeting, ARankWithAnotherSecretFindsNobody) {
  const auto said = meet_as({0}, 2, key_of_test(), "1", [] {
    setenv("ONEHOP_MEETING_KEY", "another", 1);
    EXPECT_TRUE(has(meet_as({1}, 2, key_of_test(), "1")[0], "rank 0 was not found"));
    unsetenv("ONEHOP_MEETING_KEY");
  });
  EXPECT_TRUE(has(said[0], "only 0 of the other 1 have joined")) << said[0];
}

TEST(Meeting, AGuestThatEndsBeforeItJoinsIsLostAndOneThatStaysSilentIsNotWaitedForWithoutEnd) {
  const std::string key = key_of_test();
  const std::array<std::int32_t, 4> hello = {0x65'68'6f'31, 0x31'6f'6c'6c, 1, 3};
  std::string bytes(sizeof hello, '\0');
  std::memcpy(bytes.data(), hello.data(), sizeof hello);
  for (const bool ends : {true, false}) {
    Socket guest;
    const auto said = meet_as({0, 2}, 3, key + (ends ? ".ends" : ".stays"), "2", [&] {
      guest = connect_and_say(meeting_point(key + (ends ? ".ends" : ".stays")), bytes);
      if (!ends) return;
      // It received the memory as rank 1, and ends.
      std::array<std::byte, 64> answer{};
      Socket memory;
      while (receive_now(guest, answer, &memory) == -1) nap(0.01);
      EXPECT_GE(memory.fd(), 0);
      guest = Socket();
    });
    EXPECT_TRUE(has(said[0], ends ? "rank 1 has ended without joining" : "not rank 1")) << said[0];
    EXPECT_TRUE(has(said[1], ends ? "rank 1 has ended" : "rank 1 has not joined, and so rank 0 (process")) << said[1];
  }
}

// Returns the error of a guest whose rank 0 sends `answer` and `memory` (-1: none).
std::string guest_of(int memory, const std::string& answer) {
  const std::string key = key_of_test();
  const Socket listener = new_socket();
  if (!bind_and_listen(listener, meeting_point(key))) return "cannot listen";
  const auto said = meet_as({1}, 2, key, "5", [&] {
    for (int tries = 0; tries < 500; ++tries, nap(0.01)) {
      const Socket guest(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (guest.fd() < 0) continue;
      static_cast<void>(send_now(guest, std::as_bytes(std::span<const char>(answer)), memory));
      char byte = 0;
      while (recv(guest.fd(), &byte, 1, 0) > 0) {
      }
      return;
    }
  });
  return said[0];
}

TEST(Meeting, MemoryFromAHostileRankZeroIsRefused) {
  std::string welcome(16, '\0');
  const std::array<std::int32_t, 4> words = {0x6e'61'6f'31, 0x31'72'77'73, 1, 2};
  std::memcpy(welcome.data(), words.data(), sizeof words);
  const std::int64_t enough = detail::control_memory_bytes(2);
  const auto memory = [](std::int64_t bytes, int seals) {
    Socket file(memfd_create("onehop", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(file.fd(), bytes), 0);
    EXPECT_EQ(fcntl(file.fd(), F_ADD_SEALS, seals), 0);
    return file;
  };
  constexpr int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
  EXPECT_TRUE(has(guest_of(memory(enough, F_SEAL_GROW).fd(), welcome), "size is sealed"));
  EXPECT_TRUE(has(guest_of(memory(4096, sealed).fd(), welcome), "has 4096 bytes"));
  EXPECT_TRUE(has(guest_of(memory(enough, sealed).fd(), welcome), "not the memory of an onehop launch"));
  EXPECT_TRUE(has(guest_of(-1, welcome), "does not answer as rank 0"));
  EXPECT_TRUE(has(guest_of(-1, std::string(16, 'x')), "does not answer as rank 0"));
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  EXPECT_TRUE(has(guest_of(ends[0], welcome), "expected a memfd"));
  close(ends[0]);
  close(ends[1]);
}

TEST(Meeting, OnlyMemoryOfThatFormIsOpenedByItsPath) {
  const auto open = [](const std::string& path) {
    try {
      static_cast<void>(SharedMemory::open(path, 1));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("opened");
  };
  EXPECT_TRUE(has(open("/etc/passwd"), "/proc/PID/fd/NUMBER"));
  EXPECT_TRUE(has(open("/proc/self/fd/0"), "/proc/PID/fd/NUMBER"));
  EXPECT_TRUE(has(open("/proc/1/fd/3/../0"), "/proc/PID/fd/NUMBER"));
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  // It has no writer, so opening it would block.
  EXPECT_TRUE(
      has(open("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[0])), "another kind of file"));
  close(ends[0]);
  close(ends[1]);
  const SharedMemory own = SharedMemory::create(4096, "a test");
  EXPECT_NE(ftruncate(own.fd(), 0), 0) << "it can be shortened";
  EXPECT_NE(ftruncate(own.fd(), 8192), 0) << "it can grow";
}

// Numbers that no correct rank writes cause an error and not a read beyond the mailbox.
TEST(Meeting, LengthsInControlMemoryAreChecked) {
  // A rank's part: round, process, left, ended, reported_lost (24 bytes), total[2], length[2].
  constexpr std::int64_t seat_of_rank_1 = 128 + (std::int64_t{128} + 2 * (16 << 10));
  struct Case {
    std::int64_t total;
    std::int64_t length;
  };
  for (const auto& [total, length] :
       {Case{8, std::int64_t{1} << 40}, Case{8, -1}, Case{std::int64_t{1} << 50, 16 << 10}, Case{-8, 0}, Case{8, 7}}) {
    const auto control = detail::ControlMemory::create(2);
    const auto bootstrap = detail::join_control_memory(control.path(), 0, 2, 0);
    const SharedMemory memory = SharedMemory::open(control.path(), 1);
    std::byte* const seat = memory.data() + seat_of_rank_1;
    const std::array<std::int64_t, 4> numbers = {total, total, length, length};
    std::memcpy(seat + 24, numbers.data(), sizeof numbers);
    reinterpret_cast<std::atomic<std::uint64_t>*>(seat)->store(1);
    try {
      static_cast<void>(bootstrap->allgather({}));
      FAIL() << total << " and " << length << " were accepted";
    } catch (const Error& error) {
      EXPECT_TRUE(has(error.what(), "rank 1 wrote invalid data into the control memory")) << error.what();
    }
  }
}

TEST(Meeting, OfSeveralDescriptorsThatComeNoneIsKeptButOne) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Socket from(ends[0]);
  const Socket to(ends[1]);
  const std::array<int, 2> next{dup(0), dup(0)};
  for (const int fd : next) close(fd);
  std::byte word{};
  iovec part{&word, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  std::memcpy(CMSG_DATA(header), ends.data(), 2 * sizeof(int));
  ASSERT_EQ(sendmsg(from.fd(), &message, 0), 1);
  {
    Socket came;
    ASSERT_EQ(detail::receive_now(to, std::span(&word, 1), &came), 1);
    EXPECT_GE(came.fd(), 0);
  }
  for (const int fd : next) EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "descriptor " << fd << " is left open";
}

}  // namespace
}  // namespace onehop
