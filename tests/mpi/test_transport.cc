// The behaviours of all transports (tests/support/transport_suite.h), over MPI.
#include <gtest/gtest.h>

#include "tests/mpi/world.h"
#include "tests/support/transport_suite.h"

namespace onehop::testing {
namespace {

class MpiTransport : public ::testing::TestWithParam<Behaviour> {};

TEST_P(MpiTransport, Behaves) { GetParam().check(world(), {TransportKind::mpi, true}); }

INSTANTIATE_TEST_SUITE_P(All, MpiTransport, ::testing::ValuesIn(transport_behaviours()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onehop::testing
