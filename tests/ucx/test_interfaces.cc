// Which networks of the ranks of a group are rails.
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "onehop/error.h"
#include "src/ucx/interfaces.h"

namespace onehop::detail::ucx {
namespace {

// An interface on network 10.0.`net`.0/24.
Interface on(std::string_view name, std::uint32_t net, std::uint32_t host, std::uint32_t mbit = 1000) {
  Interface one;
  name.copy(one.name.data(), one.name.size() - 1);
  one.network = 10U << 24 | net << 8;
  one.address = one.network | host;
  one.prefix = 24;
  one.mbit = mbit;
  return one;
}

using Interfaces = std::vector<std::vector<Interface>>;
std::vector<std::string> two_hosts() { return {"a", "b"}; }

TEST(UcxRails, AreTheNetworksThatAllRanksHave) {
  const Interfaces all{{on("eth0", 2, 1), on("eth1", 1, 1), on("eth2", 7, 1)}, {on("ib1", 1, 2), on("ib0", 2, 2)}};
  // In the order of networks, whatever their names.
  EXPECT_EQ(common_rails(all, two_hosts(), 0), (std::vector<RailDevice>{{"eth1", 1000}, {"eth0", 1000}}));
  EXPECT_EQ(common_rails(all, two_hosts(), 1), (std::vector<RailDevice>{{"ib1", 1000}, {"ib0", 1000}}));
}

TEST(UcxRails, NeedTwoNetworks) {
  EXPECT_TRUE(common_rails(Interfaces{{on("e0", 1, 1), on("e1", 2, 1)}, {on("e0", 1, 2)}}, two_hosts(), 0).empty());
  EXPECT_TRUE(common_rails(Interfaces{{}, {}}, two_hosts(), 1).empty());
}

// The bridge of containers has the same address on every host.
TEST(UcxRails, LeaveOutNetworksOfEachHostsOwn) {
  const Interfaces all{{on("e0", 1, 1), on("e1", 2, 1), on("docker0", 3, 1)},
                       {on("e0", 1, 1), on("e1", 2, 1), on("docker0", 3, 1)},
                       {on("e0", 1, 2), on("e1", 2, 2), on("docker0", 3, 1)}};
  const std::vector<std::string> hosts{"a", "a", "b"};
  EXPECT_EQ(common_rails(all, hosts, 2), (std::vector<RailDevice>{{"e0", 1000}, {"e1", 1000}}));
}

TEST(UcxRails, LeaveOutSlowNetworks) {
  const Interfaces all{{on("e0", 1, 1, 1000), on("e1", 2, 1, 25000), on("e2", 3, 1, 40000)},
                       {on("e0", 1, 2, 1000), on("e1", 2, 2, 25000), on("e2", 3, 2, 25000)}};
  EXPECT_EQ(common_rails(all, two_hosts(), 0), (std::vector<RailDevice>{{"e1", 25000}, {"e2", 25000}}));
}

TEST(UcxRails, OfThisMachineHaveNamesAndNetworks) {
  for (const Interface& one : network_interfaces()) {
    EXPECT_FALSE(one.device().empty());
    EXPECT_NE(one.device(), "lo");
    EXPECT_EQ(one.network & one.address, one.network);
    EXPECT_LE(one.prefix, 32);
  }
}

TEST(UcxRails, LeaveOutWhatUcxMayNotUse) {
  const std::size_t all = network_interfaces().size();
  setenv("UCX_NET_DEVICES", "none-of-them", 1);
  EXPECT_TRUE(network_interfaces().empty());
  setenv("UCX_NET_DEVICES", "^none-of-them", 1);
  EXPECT_EQ(network_interfaces().size(), all);
  unsetenv("UCX_NET_DEVICES");
}

bool has_loopback() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    found = found || (std::string_view(one->ifa_name) == "lo" && one->ifa_addr != nullptr &&
                      one->ifa_addr->sa_family == AF_INET);
  }
  freeifaddrs(all);
  return found;
}

TEST(UcxRails, CanBeNamed) {
  if (!has_loopback()) GTEST_SKIP() << "the loopback interface lo is down here";
  setenv("ONEHOP_RAILS", "lo,lo", 1);
  const std::vector<RailDevice> named = named_rails();
  setenv("ONEHOP_RAILS", "lo,nosuch0", 1);
  EXPECT_THROW(static_cast<void>(named_rails()), BadInput);
  setenv("ONEHOP_RAILS", "none", 1);
  EXPECT_TRUE(named_rails().empty());
  unsetenv("ONEHOP_RAILS");
  EXPECT_TRUE(named_rails().empty());
  ASSERT_EQ(named.size(), 2);
  EXPECT_EQ(named[0].device, "lo");
}

// Devices that are no network interfaces, such as mlx5_0:1, have no such state. tests/hosts/test_link_faults.py
// switches interfaces off.
TEST(UcxInterfaces, ADeviceWithoutAStateIsNotDown) { EXPECT_FALSE(is_down("nosuch0:1")); }

}  // namespace
}  // namespace onehop::detail::ucx
