// The tests of MPI: one program that an MPI launcher starts as several ranks (tests/mpi/run.sh). Every rank runs the
// same tests in the same order. Rank 0 reports all results, the others only failures.
#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/error.h"
#include "tests/mpi/world.h"

namespace onehop::testing {
namespace {

std::unique_ptr<Group> the_world;

class FailuresOnly final : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", world().rank(),
                 result.file_name() == nullptr ? "?" : result.file_name(), result.line_number(), result.message());
  }
};

// Makes the ranks of this machine pretend to be on `hosts` hosts (0: one each), in blocks. Ranks of different hosts
// share no memory. Before there is a group, the launcher's environment gives the rank.
void pretend_hosts(int hosts) {
  const auto number = [](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (const char* text = std::getenv(name)) return std::atoi(text);
    }
    return -1;
  };
  const int rank = number({"OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  const int ranks = number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  setenv("ONEHOP_TEST_HOST", ("host" + std::to_string(hosts == 0 ? rank : rank * hosts / ranks)).c_str(), 1);
}

// One rank ends early, in order or not. The launcher and onehop determine the outcome of the others.
int end_early(std::string_view how) {
  const Group& group = world();
  if (group.rank() == group.size() - 1) {
    if (how == "failing") {
      std::fprintf(stderr, "rank %d ends with status 7\n", group.rank());
      std::exit(7);
    }
    the_world.reset();
    return 0;
  }
  const ChannelSpec spec{.direction = ChannelSpec::Direction::receive, .peer = group.size() - 1, .bytes = 8};
  try {
    static_cast<void>(open_channels(group, {&spec, 1}));
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", group.rank(), error.what());
    return 3;
  }
  return 1;
}

// The last rank is killed while the others wait for it over MPI, which is told to continue. All of them name it, and
// they end.
int survive() {
  const int last = world().size() - 1;
  std::vector<ChannelSpec> specs;
  for (int peer = 0; peer < world().size(); ++peer) {
    for (const auto direction : {ChannelSpec::Direction::send, ChannelSpec::Direction::receive}) {
      if (peer != world().rank()) specs.push_back({.direction = direction, .peer = peer, .bytes = 8, .slots = 4});
    }
  }
  bool found = false;
  {
    Channels channels = open_channels(world(), specs, TransportKind::mpi);
    if (world().rank() == last) {
      ::raise(SIGKILL);
      return 1;
    }
    try {
      static_cast<void>(channels.receivers.back().wait());
    } catch (const PeerLost& error) {
      found = error.rank() == last;
      std::fprintf(stderr, "rank %d: %s\n", world().rank(), error.what());
    }
  }
  the_world.reset();
  if (found) std::fprintf(stderr, "survivor: as it should be\n");
  std::fflush(nullptr);
  ::_exit(found ? 0 : 1);
}

}  // namespace

const Group& world() { return *the_world; }

}  // namespace onehop::testing

int main(int argc, char** argv) {
  using namespace onehop::testing;
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "two_hosts") {
    pretend_hosts(2);
    --argc;
  }
  const bool survives = argc > 1 && std::string_view(argv[1]) == "survive";
  if (survives) pretend_hosts(0);
  try {
    the_world = std::make_unique<onehop::Group>(onehop::Group::world());
  } catch (const onehop::Error& error) {
    std::fprintf(stderr, "no group: %s\n", error.what());
    return 1;
  }
  world().set_timeout(60);
  if (survives) return survive();
  if (argc > 1) return end_early(argv[1]);
  if (world().rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly);
  }
  const int result = RUN_ALL_TESTS();
  the_world.reset();
  return result;
}
