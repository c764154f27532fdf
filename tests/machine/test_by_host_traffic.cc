// The messages of all-reduces by host: every host sends 2 n (H - 1) / H bytes, in lists and as exchanges of bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "onehop/error.h"
#include "onehop/machine/simulate.h"

namespace onehop {
namespace {

std::map<int, std::int64_t> sent_by_hosts(const Traffic& traffic, const std::vector<int>& hosts) {
  std::map<int, std::int64_t> sent;
  for (const TrafficRound& round : traffic.listed().rounds) {
    for (const Message& message : round.messages) {
      const int from = hosts[static_cast<std::size_t>(message.from)];
      if (from != hosts[static_cast<std::size_t>(message.to)]) sent[from] += message.bytes;
    }
  }
  return sent;
}

AllReduceSpec spec_of(const std::vector<int>& hosts) {
  return {static_cast<int>(hosts.size()), 1 << 22, ElementType::float32, Combine::add, ReduceAlgorithm::by_host};
}

TEST(ByHostTraffic, EveryHostSendsTheLeast) {
  std::vector<int> many;
  for (int rank = 0; rank < 1024; ++rank) many.push_back(rank / 8);
  const std::vector<std::vector<int>> layouts = {
      {0, 0, 0, 1}, {0, 0, 0, 0, 1, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 0, 1, 1, 1, 2}, {3, 1, 3, 1, 3}, many};
  for (const std::vector<int>& hosts : layouts) {
    const Traffic traffic = by_host_traffic(spec_of(hosts), hosts, 1 << 20);
    const auto sent = sent_by_hosts(traffic, hosts);
    const auto count = static_cast<double>(sent.size());
    for (const auto& [host, bytes] : sent) {
      EXPECT_NEAR(static_cast<double>(bytes) / (2.0 * (1 << 24) * (count - 1) / count), 1, 1e-4)
          << "host " << host << " of " << hosts.size() << " ranks";
    }
    EXPECT_EQ(traffic.rounds.size(), hosts.size() == many.size() ? 4U : 19U);
  }
}

TEST(ByHostTraffic, ABroadcastLeavesTheFirstHostOnce) {
  for (const bool in_chain : {false, true}) {
    for (const std::vector<int>& hosts :
         {std::vector<int>{0, 1, 2, 3}, {0, 0, 0, 1}, {0, 0, 0, 0, 1, 1, 1, 2}, {0, 1, 0, 1}}) {
      std::vector<std::int64_t> received(hosts.size(), 0);
      const Traffic traffic = broadcast_traffic(hosts, 1 << 20, 4, in_chain);
      for (const TrafficRound& round : traffic.rounds) {
        for (const Message& message : round.messages) received[static_cast<std::size_t>(message.to)] += message.bytes;
      }
      for (std::size_t rank = 1; rank < hosts.size(); ++rank) EXPECT_GE(received[rank], 1 << 20) << rank;
      auto sent = sent_by_hosts(traffic, hosts);
      EXPECT_NEAR(static_cast<double>(sent[0]) / (1 << 20), 1, 1e-4);
      for (const auto& [host, bytes] : sent) {
        const std::int64_t least = in_chain ? sent[0] : 0;
        EXPECT_TRUE(bytes >= least && bytes <= sent[0]) << host;
      }
    }
  }
}

TEST(ByHostTraffic, NeedsTheHostOfEveryRank) {
  EXPECT_THROW((void)by_host_traffic(spec_of({0, 0, 1}), std::vector<int>{0, 1}, 1 << 20), BadInput);
}

}  // namespace
}  // namespace onehop
