// The common behaviours of all transports, over shared memory (ranks as processes and as threads) and over the mock.
// tests/mpi/test_transport.cc runs the same over MPI.
#include <gtest/gtest.h>

#include "tests/support/ranks.h"
#include "tests/support/transport_suite.h"

namespace onehop {
namespace {

using testing::Behaviour;
using testing::transport_behaviours;

class Transport : public ::testing::TestWithParam<Behaviour> {};

constexpr testing::Carrier shared_memory{TransportKind::shared_memory, true};
constexpr testing::Carrier mock{TransportKind::mock, false};

TEST_P(Transport, SharedMemoryBetweenProcesses) {
  for (const int ranks : {1, 2, 3, 4}) {
    testing::on_ranks(ranks, [](const Group& group) { GetParam().check(group, shared_memory); });
  }
}

TEST_P(Transport, SharedMemoryBetweenThreads) {
  for (const int ranks : {1, 2, 3}) {
    testing::on_threads(ranks, [](const Group& group) { GetParam().check(group, shared_memory); });
  }
}

TEST_P(Transport, Mock) {
  for (const int ranks : {1, 2}) {
    testing::on_ranks(ranks, [](const Group& group) { GetParam().check(group, mock); });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Transport, ::testing::ValuesIn(transport_behaviours()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onehop
