// The behaviours of all transports (tests/support/transport_suite.h), over UCX inside this machine: with active
// messages and with puts, over shared memory and over TCP. tests/mpi/test_transport.cc runs them between hosts.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "onehop/error.h"
#include "src/ucx/library.h"
#include "tests/support/ranks.h"
#include "tests/support/transport_suite.h"

namespace onehop {
namespace {

using testing::Behaviour;
using testing::transport_behaviours;

constexpr testing::Carrier ucx{TransportKind::ucx, true};

#ifdef __SANITIZE_ADDRESS__
// The address sanitizer of g++ 12 intercepts process_vm_readv, takes addresses of the other process for its own, and
// crashes. UCX calls it for its transport cma.
[[maybe_unused]] const int without_cma = setenv("UCX_TLS", "^cma", 0);
#endif

// Skips the test where there is no UCX. Looks for it in a process of its own, because ranks are forked from this one.
[[maybe_unused]] bool absent(std::string& why) {
  static const bool found = testing::fork_ranks(1,
                                                [](const Group&) {
                                                  std::vector<std::string> tried;
                                                  if (detail::ucx::find_library(tried) == nullptr) throw Error("none");
                                                })[0]
                                .ok;
  why = "no UCX library was found (`onehop doctor` lists the places)";
  return !found;
}

#ifdef __SANITIZE_THREAD__
// As with MPI: the sanitizer does not see how UCX, which is not instrumented, orders its own threads.
#define ONEHOP_NEEDS_UCX() GTEST_SKIP() << "the thread sanitizer reports false races inside UCX"
#else
#define ONEHOP_NEEDS_UCX() \
  if (std::string why; absent(why)) GTEST_SKIP() << why
#endif

struct Way {
  const char* name;
  const char* mode;
  const char* transports;  // UCX_TLS; null: UCX's choice
};
constexpr Way ways[] = {{"Messages", "messages", nullptr},
                        {"Puts", "puts", nullptr},
                        {"MessagesOverTcp", "messages", "tcp,self"},
                        {"PutsOverTcp", "puts", "tcp,self"}};

class UcxTransport : public ::testing::TestWithParam<std::tuple<Behaviour, Way>> {};

TEST_P(UcxTransport, BetweenProcesses) {
  ONEHOP_NEEDS_UCX();
  const auto& [behaviour, way] = GetParam();
  const bool puts = std::string_view(way.mode) == "puts";  // slow where no hardware does them
  for (const int ranks : puts ? std::vector{2} : std::vector{1, 2, 3}) {
    testing::on_ranks(ranks, [&](const Group& group) {
      setenv("ONEHOP_UCX_MODE", way.mode, 1);
      if (way.transports != nullptr) setenv("UCX_TLS", way.transports, 1);
      behaviour.check(group, ucx);
    });
  }
}

// What each rank says when it opens channels over UCX; rank 1 prepares its environment first.
void expect_refusal(const std::function<void()>& spoil, const std::vector<std::string>& words) {
  testing::on_ranks(2, [&](const Group& group) {
    if (group.rank() == 1) spoil();
    try {
      static_cast<void>(open_channels(group, {}, TransportKind::ucx));
      ADD_FAILURE() << "rank " << group.rank() << " opened channels";
    } catch (const Error& error) {
      const std::string said = error.what();
      for (const std::string& word : words) EXPECT_NE(said.find(word), std::string::npos) << said;
      if (group.rank() == 0) {
        EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
      }
    }
    group.barrier();
  });
}

TEST(Ucx, NamesTheRankWithoutALibrary) {
  ONEHOP_NEEDS_UCX();
  expect_refusal([] { setenv("ONEHOP_UCX", "none", 1); }, {"no UCX library was found", "ONEHOP_UCX"});
}

TEST(Ucx, NamesAnInterfaceThatDoesNotExist) {
  ONEHOP_NEEDS_UCX();
  expect_refusal([] { setenv("UCX_NET_DEVICES", "lo,nosuch0", 1); }, {"UCX_NET_DEVICES", "'nosuch0'", "lo"});
}

TEST(Ucx, NamesARailThatDoesNotExist) {
  ONEHOP_NEEDS_UCX();
  expect_refusal([] { setenv("ONEHOP_RAILS", "lo,nosuch0", 1); }, {"ONEHOP_RAILS", "'nosuch0'", "lo"});
}

TEST(Ucx, RanksNameAsManyRails) {
  ONEHOP_NEEDS_UCX();
  expect_refusal([] { setenv("ONEHOP_RAILS", "lo,lo", 1); }, {"ONEHOP_RAILS", "0 interfaces on rank 0", "2 on rank 1"});
}

TEST(Ucx, NamesAWrongMode) {
  ONEHOP_NEEDS_UCX();
  expect_refusal([] { setenv("ONEHOP_UCX_MODE", "pigeons", 1); },
                 {"ONEHOP_UCX_MODE", "'pigeons'", "auto, messages or puts"});
}

TEST(Ucx, RanksTakeTheSameMode) {
  ONEHOP_NEEDS_UCX();
  expect_refusal([] { setenv("ONEHOP_UCX_MODE", "puts", 1); },
                 {"ONEHOP_UCX_MODE is 'auto' on rank 0, but 'puts' on rank 1"});
}

// A rank that dies is noticed by its peer, and what it sent before counts.
TEST(Ucx, NamesTheRankThatDied) {
  ONEHOP_NEEDS_UCX();
  const auto ended = testing::fork_ranks(2, [](const Group& group) {
    group.set_timeout(20);
    ChannelSpec spec = testing::end_of_channel(
        group.rank() == 1 ? ChannelSpec::Direction::send : ChannelSpec::Direction::receive, 1 - group.rank(), 1000);
    Channels channels = open_channels(group, {&spec, 1}, TransportKind::ucx);
    if (group.rank() == 1) {
      channels.senders[0].put(testing::make_message(1, 1000));
      usleep(100'000);
      raise(SIGKILL);
    }
    std::vector<std::byte> got(1000);
    channels.receivers[0].get(got);
    EXPECT_EQ(got, testing::make_message(1, 1000));
    try {
      channels.receivers[0].get(got);
      ADD_FAILURE() << "nothing was sent";
    } catch (const PeerLost& error) {
      EXPECT_EQ(error.rank(), 1);
    }
  });
  EXPECT_TRUE(ended[0].ok) << ended[0].message;
  EXPECT_EQ(ended[1].signal, SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(All, UcxTransport,
                         ::testing::Combine(::testing::ValuesIn(transport_behaviours()), ::testing::ValuesIn(ways)),
                         [](const auto& info) { return std::get<0>(info.param).name + std::get<1>(info.param).name; });

}  // namespace
}  // namespace onehop
