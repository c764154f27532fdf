// How every transport behaves: one list of checks, run over all of them (tests/channel/test_transport.cc,
// tests/mpi/test_transport.cc).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onehop/channel.h"
#include "onehop/group.h"

namespace onehop::testing {

struct Carrier {
  TransportKind kind = TransportKind::automatic;
  bool arrives = true;  // the mock transport moves nothing: what arrives there is not looked at
};

struct Behaviour {
  std::string name;
  // Called by every rank of the group; uses GoogleTest's expectations.
  std::function<void(const Group&, const Carrier&)> check;
};

[[nodiscard]] const std::vector<Behaviour>& transport_behaviours();

// `bytes` bytes that differ from message to message and from place to place.
[[nodiscard]] std::vector<std::byte> make_message(std::int64_t number, std::int64_t bytes);

// One end of a channel.
[[nodiscard]] ChannelSpec end_of_channel(ChannelSpec::Direction direction, int peer, std::int64_t bytes, int tag = 0);

}  // namespace onehop::testing
