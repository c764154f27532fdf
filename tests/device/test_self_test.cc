// The comparison of a device with the processor, and what it finds.
#include "src/device/self_test.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "onehop/error.h"
#include "src/device/kernels.h"
#include "tests/device/standin/standin.h"
#include "tests/support/thrown.h"

namespace onehop::device {
namespace {

using testing::StandIn;
using testing::Variable;

// The kernels that were compared, or those that differ.
std::set<std::string> kernels_of(Device& device, bool that_differ) {
  std::set<std::string> found;
  for (const KernelCheck& check : check_kernels(device, true))
    if (!that_differ || !check.error.empty()) found.insert(check.name.substr(0, check.name.find(',')));
  return found;
}

TEST(DeviceSelfTest, ComparesEveryKernel) {
  const auto compared = kernels_of(*Device::processor(), false);
  EXPECT_EQ(compared.size(), kernels().size());
  for (const Kernel& kernel : kernels()) EXPECT_TRUE(compared.contains(std::string(kernel.name))) << kernel.name;
  EXPECT_EQ(kernels_of(*Device::processor(), true), std::set<std::string>());
}

TEST(DeviceSelfTest, FindsEveryKernelThatIsWrong) {
  const StandIn standin(Kind::cuda);
  EXPECT_EQ(kernels_of(*Device::cuda(), true), std::set<std::string>());
  for (const Kernel& kernel : kernels()) {
    const Variable wrong("STANDIN_WRONG", std::string(kernel.name));
    EXPECT_TRUE(kernels_of(*Device::cuda(), true).contains(std::string(kernel.name))) << kernel.name;
  }
}

TEST(DeviceSelfTest, ACardThatIsWrongIsNotUsed) {
  const StandIn standin(Kind::hip);
  const Variable wrong("STANDIN_WRONG", "onehop_tile_pass_f64");
  for (int use = 0; use < 2; ++use)
    testing::expect_says<Error>([] { check_at_first_use(*Device::hip()); },
                                "in the kernel onehop_tile_pass_f64, turns: ", "the device is not used");
  const Variable off("ONEHOP_DEVICE_CHECK", "0");
  check_at_first_use(*Device::hip());
}

TEST(DeviceSelfTest, AnErrorOfTheDriverIsADifference) {
  const StandIn standin(Kind::cuda);
  const auto card = Device::cuda();
  const Variable failing("STANDIN_FAIL", "cuLaunchKernel:2");
  const auto checks = check_kernels(*card, true);
  EXPECT_EQ(checks[0].error, "");
  EXPECT_EQ(checks[1].name, "onehop_decode_fp16");
  EXPECT_SAYS(checks[1].error, "CUDA_ERROR_UNKNOWN from cuLaunchKernel");
}

}  // namespace
}  // namespace onehop::device
