// The behaviours of all transports (tests/support/transport_suite.h), over MPI, and over UCX beside MPI.
#include <gtest/gtest.h>

#include "onehop/error.h"
#include "src/ucx/context.h"
#include "tests/mpi/world.h"
#include "tests/support/transport_suite.h"

namespace onehop::testing {
namespace {

class MpiTransport : public ::testing::TestWithParam<Behaviour> {};

TEST_P(MpiTransport, Behaves) { GetParam().check(world(), {TransportKind::mpi, true}); }

TEST_P(MpiTransport, BehavesOverUcx) {
  bool usable = true;
  try {
    static_cast<void>(detail::ucx::process_context());
  } catch (const Error&) {
    usable = false;
  }
  const std::byte mine{usable};
  for (const auto& theirs : world().allgather({&mine, 1})) usable = usable && theirs.front() != std::byte{0};
  if (!usable) GTEST_SKIP() << "UCX cannot be used on all ranks";
  GetParam().check(world(), {TransportKind::ucx, true});
}

INSTANTIATE_TEST_SUITE_P(All, MpiTransport, ::testing::ValuesIn(transport_behaviours()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onehop::testing
