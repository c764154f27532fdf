// The network interfaces of this machine, and which of them reach all ranks of a group: the rails of its transport.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onehop::detail::ucx {

// An interface with a cable and an IPv4 address. Plain data, which ranks send to each other.
struct Interface {
  std::array<char, 16> name{};
  std::uint32_t address = 0;  // in the byte order of this machine, as is `network`
  std::uint32_t network = 0;
  std::uint32_t prefix = 0;  // bits of the address that give the network
  std::uint32_t mbit = 0;    // bits per microsecond, as the driver reports; 0: unknown

  [[nodiscard]] std::string_view device() const noexcept { return name.data(); }
};

// Those of this machine that UCX may use (UCX_NET_DEVICES), without the loopback.
[[nodiscard]] std::vector<Interface> network_interfaces();

// A rail of this rank: its device, "eth0", and how fast it is, in a unit that all rails share.
struct RailDevice {
  std::string device;
  double speed = 1;
  friend bool operator==(const RailDevice&, const RailDevice&) = default;
};

// The devices of rank `rank` on the networks that all ranks have, fastest networks only (at least half as fast as the
// fastest), in the same order on every rank; empty if there are fewer than two such networks. A network does not count
// if ranks of different hosts have the same address there: it is one of each host's own, as of containers.
//
// interfaces[r] and hosts[r] are those of rank r. A rank may have several interfaces on a network; its first one
// counts.
[[nodiscard]] std::vector<RailDevice> common_rails(std::span<const std::vector<Interface>> interfaces,
                                                   std::span<const std::string> hosts, int rank);

// The interfaces that ONEHOP_RAILS names, in its order; empty for `auto` and `none`. Throws BadInput for one that this
// machine does not have.
[[nodiscard]] std::vector<RailDevice> named_rails();

// Whether a network interface has no carrier or is switched off. UCX refuses such a one. Devices of InfiniBand are
// never.
[[nodiscard]] bool is_down(const std::string& device);

// Throws BadInput, which begins with `variable`, unless every device in a list such as "eth0,mlx5_0:1" exists here.
void check_devices(std::string_view variable, std::string_view list);

}  // namespace onehop::detail::ucx
