#include "src/ucx/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "onehop/error.h"
#include "src/base/env.h"

namespace onehop::detail::ucx {
namespace {

namespace fs = std::filesystem;

struct FreeAddresses {
  void operator()(ifaddrs* list) const noexcept { ::freeifaddrs(list); }
};

std::uint32_t ipv4(const sockaddr* address) {
  sockaddr_in internet{};
  std::memcpy(&internet, address, sizeof internet);
  return ntohl(internet.sin_addr.s_addr);
}

// The speed that the driver states; virtual devices state none.
std::uint32_t speed_of(const std::string& device) {
  std::ifstream file("/sys/class/net/" + device + "/speed");
  long mbit = 0;
  return file >> mbit && mbit > 0 ? static_cast<std::uint32_t>(mbit) : 0;
}

std::vector<std::string> entries_of(const char* folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.push_back(entry.path().filename());
  return names;
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (comma > 0) parts.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

// Whether UCX_NET_DEVICES, "eth0,eth1", "all" or "^eth2", leaves a device to UCX.
bool is_allowed(std::string_view device) {
  const char* const text = std::getenv("UCX_NET_DEVICES");
  std::string_view wanted = text == nullptr ? "" : text;
  if (wanted.empty() || wanted == "all") return true;
  const bool excluded = wanted.front() == '^';
  if (excluded) wanted.remove_prefix(1);
  const std::vector<std::string> names = split(wanted);
  return (std::ranges::find(names, device) != names.end()) != excluded;
}

// Address and prefix of a network.
using Network = std::pair<std::uint32_t, std::uint32_t>;

Network network_of(const Interface& one) { return {one.network, one.prefix}; }

const Interface* first_on(const std::vector<Interface>& interfaces, const Network& network) {
  const auto found = std::ranges::find(interfaces, network, network_of);
  return found == interfaces.end() ? nullptr : &*found;
}

// The speed of a network: that of its slowest interface; -1 if not all ranks have it, or if it is not one network.
std::int64_t common_speed(std::span<const std::vector<Interface>> interfaces, std::span<const std::string> hosts,
                          const Network& network) {
  std::map<std::uint32_t, std::string> owners;
  std::int64_t slowest = -1;
  for (std::size_t r = 0; r < interfaces.size(); ++r) {
    const Interface* const one = first_on(interfaces[r], network);
    if (one == nullptr) return -1;
    if (const auto [at, is_new] = owners.try_emplace(one->address, hosts[r]); !is_new && at->second != hosts[r]) {
      return -1;
    }
    slowest = slowest < 0 ? one->mbit : std::min<std::int64_t>(slowest, one->mbit);
  }
  return slowest;
}

}  // namespace

std::vector<Interface> network_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeAddresses> owner(list);
  std::vector<Interface> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    constexpr unsigned works = IFF_UP | IFF_RUNNING;
    if (one->ifa_addr == nullptr || one->ifa_netmask == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & works) != works || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const std::string_view name(one->ifa_name);
    if (name.find(':') != std::string_view::npos) continue;  // another address of an interface, under a name of its own
    if (!is_allowed(name)) continue;
    Interface& made = found.emplace_back();
    name.copy(made.name.data(), made.name.size() - 1);
    const std::uint32_t mask = ipv4(one->ifa_netmask);
    made.address = ipv4(one->ifa_addr);
    made.network = made.address & mask;
    made.prefix = static_cast<std::uint32_t>(std::popcount(mask));
    made.mbit = speed_of(std::string(name));
  }
  return found;
}

std::vector<RailDevice> common_rails(std::span<const std::vector<Interface>> interfaces,
                                     std::span<const std::string> hosts, int rank) {
  std::map<Network, std::int64_t> speeds;
  std::int64_t fastest = 0;
  for (const Interface& one : interfaces[0]) {
    const std::int64_t speed = common_speed(interfaces, hosts, network_of(one));
    if (speed < 0) continue;
    speeds[network_of(one)] = speed;
    fastest = std::max(fastest, speed);
  }
  std::erase_if(speeds, [fastest](const auto& one) { return one.second * 2 < fastest; });
  std::vector<RailDevice> rails;
  if (speeds.size() < 2) return rails;
  for (const auto& [network, speed] : speeds) {
    const Interface* const own = first_on(interfaces[static_cast<std::size_t>(rank)], network);
    rails.push_back({std::string(own->device()), static_cast<double>(std::max<std::int64_t>(speed, 1))});
  }
  return rails;
}

std::vector<RailDevice> named_rails() {
  const std::string value = env::text("ONEHOP_RAILS").value_or("auto");
  if (value == "auto" || value == "none") return {};
  check_devices("ONEHOP_RAILS", value);
  std::vector<RailDevice> rails;
  for (const std::string& name : split(value)) {
    rails.push_back({name, std::max<double>(speed_of(name), 1)});
  }
  return rails;
}

bool is_down(const std::string& device) {
  std::ifstream file("/sys/class/net/" + device + "/operstate");
  std::string state;
  file >> state;
  return state == "down" || state == "lowerlayerdown";
}

void check_devices(std::string_view variable, std::string_view list) {
  std::vector<std::string> present = entries_of("/sys/class/net");
  for (std::string& name : entries_of("/sys/class/infiniband")) present.push_back(std::move(name));
  std::ranges::sort(present);
  for (const std::string& name : split(list)) {
    const std::string device = name.substr(0, name.find(':'));  // mlx5_0:1 is its first port
    if (device.empty() || device == "all" || std::ranges::find(present, device) != present.end()) continue;
    std::string names;
    for (const std::string& one : present) names += (names.empty() ? "" : ", ") + one;
    throw BadInput(std::string(variable) + " names the interface '" + device +
                   "', which this machine does not have; it has " + (names.empty() ? "none" : names));
  }
}

}  // namespace onehop::detail::ucx
