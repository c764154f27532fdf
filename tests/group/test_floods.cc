// Processes of this user that connect to rank 0 without pause, while it has few descriptors.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <span>
#include <string>
#include <vector>

#include "src/group/local_socket.h"
#include "tests/support/faults.h"
#include "tests/support/meeting.h"

namespace onehop {
namespace {

using detail::Socket;

struct Flood {
  const char* name;
  std::string says;
  bool holds;  // its connections, as many as it can
};

void PrintTo(const Flood& flood, std::ostream* out) { *out << flood.name; }

[[noreturn]] void connect_without_pause(const Flood& flood, const std::string& meeting_point) {
  const detail::SocketName at(meeting_point);
  std::vector<Socket> held;
  while (held.size() < 900) {
    Socket socket = detail::new_socket();
    if (connect(socket.fd(), at.address(), at.length) != 0) continue;
    static_cast<void>(detail::send_now(socket, std::as_bytes(std::span<const char>(flood.says))));
    if (flood.holds) held.push_back(std::move(socket));
  }
  for (;;) pause();
}

class FewDescriptors : public ::testing::TestWithParam<Flood> {
 protected:
  FewDescriptors() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~FewDescriptors() override { setrlimit(RLIMIT_NOFILE, &before_); }
  // Of the processes that this one starts from now on.
  void limit_descriptors(rlim_t most) const {
    const rlimit few{most, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }

 private:
  rlimit before_{};
};

TEST_P(FewDescriptors, DelayNoMeetingAndNoLimit) {
  const std::string key = testing::key_of_test();
  const testing::Child floods(geteuid(), [&] {
    for (int flood = 0; flood < 4; ++flood) {
      if (fork() != 0) continue;
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) _exit(1);
      connect_without_pause(GetParam(), testing::meeting_point(key));
    }
  });
  ASSERT_TRUE(floods.good());
  limit_descriptors(64);
  auto begin = testing::Clock::now();
  std::vector<std::string> others;
  const auto said = testing::meet_as({0}, 4, key, "20", [&] {
    testing::nap(0.5);  // until many connections wait
    begin = testing::Clock::now();
    others = testing::meet_as({1, 2, 3}, 4, key, "20");
  });
  EXPECT_EQ(said[0], "met");
  EXPECT_EQ(others, std::vector<std::string>(3, "met"));
  EXPECT_LT(testing::seconds_since(begin), 2);
  begin = testing::Clock::now();
  const std::string alone = testing::meet_as({0}, 2, key, "1")[0];
  EXPECT_TRUE(testing::has(alone, "only 0 of the other 1 have joined")) << alone;
  EXPECT_LT(testing::seconds_since(begin), 3);
}

INSTANTIATE_TEST_SUITE_P(Floods, FewDescriptors,
                         ::testing::Values(Flood{"silent", "", true}, Flood{"half", "1hello", true},
                                           Flood{"closing", "", false}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onehop
