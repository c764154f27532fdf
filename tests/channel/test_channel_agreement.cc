// How ranks agree on channels: by digests if both ends of each ask for the same, else by their requests.
#include "src/channel/channel_agreement.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::on_threads;

ChannelSpec end_to(int peer, bool sends, std::int64_t bytes, int tag = 0) {
  ChannelSpec spec{.direction = sends ? ChannelSpec::Direction::send : ChannelSpec::Direction::receive,
                   .peer = peer,
                   .bytes = bytes,
                   .tag = tag};
  return spec;
}

std::byte stamp(int from, int to, int tag, int channels) { return std::byte(from * 37 + to * 11 + tag * 5 + channels); }

// Sends a byte on every channel, and checks those that arrive.
void check(Channels& channels, int rank, std::span<const int> peers, int tags, int round) {
  std::size_t at = 0;
  for (const int peer : peers) {
    for (int tag = 0; tag < tags; ++tag, ++at) {
      const std::byte sent = stamp(rank, peer, tag, round);
      channels.senders[at].put(std::span(&sent, 1));
    }
  }
  at = 0;
  for (const int peer : peers) {
    for (int tag = 0; tag < tags; ++tag, ++at) {
      std::byte got{};
      channels.receivers[at].get(std::span(&got, 1));
      EXPECT_EQ(got, stamp(peer, rank, tag, round)) << peer << " -> " << rank << " tag " << tag;
    }
  }
}

// Several channels between each pair, opened several times while the earlier ones stay open, with unequal numbers of
// channels on the ranks: their numbers must not be mixed up.
TEST(ChannelAgreement, NumbersChannelsAlikeOnBothRanks) {
  on_threads(5, [](const Group& group) {
    const int rank = group.rank();
    std::vector<int> peers;  // rank 0 is connected to all, the others to rank 0 and to themselves + 1 in pairs
    for (int other = 0; other < group.size(); ++other) {
      const bool connected = rank == 0 || other == 0 || (rank - 1) / 2 == (other - 1) / 2;
      if (other != rank && connected) peers.push_back(other);
    }
    std::vector<Channels> open;
    for (int round = 0; round < 3; ++round) {
      std::vector<ChannelSpec> specs;
      for (const bool sends : {true, false}) {
        for (const int peer : peers) {
          for (int tag = 0; tag <= round; ++tag) specs.push_back(end_to(peer, sends, 1, tag));
        }
      }
      open.push_back(open_channels(group, specs));
      for (std::size_t i = 0; i < open.size(); ++i) check(open[i], rank, peers, static_cast<int>(i) + 1, round);
    }
  });
}

// The slots are the sender's, though the receiver asks for others, so ranks must gather their requests.
TEST(ChannelAgreement, TakesTheSlotsOfTheSender) {
  on_threads(3, [](const Group& group) {
    std::vector<ChannelSpec> specs;
    if (group.rank() == 0) specs.push_back(end_to(1, true, 1000));
    if (group.rank() == 1) specs.push_back(end_to(0, false, 1000));
    if (!specs.empty()) {
      specs[0].slots = 2 + group.rank();
      specs[0].slot_bytes = group.rank() == 0 ? 640 : 1280;
    }
    Channels channels = open_channels(group, specs);
    std::vector<std::byte> message(1000, std::byte{7});
    if (group.rank() == 0) {
      EXPECT_EQ(channels.senders[0].ring().slots, 2U);
      channels.senders[0].put(message);
    }
    if (group.rank() == 1) {
      EXPECT_EQ(channels.receivers[0].ring().slots, 2U);
      EXPECT_EQ(channels.receivers[0].ring().slot_bytes, 640);
      std::vector<std::byte> got(1000);
      channels.receivers[0].get(got);
      EXPECT_EQ(got, message);
    }
  });
}

template <class Expected>
void expect_on_all(int ranks, const std::function<std::vector<ChannelSpec>(int)>& specs, const std::string& part) {
  on_threads(ranks, [&](const Group& group) {
    testing::expect_says<Expected>([&] { static_cast<void>(open_channels(group, specs(group.rank()))); }, part);
    // All ranks have made the same steps.
    static_cast<void>(open_channels(group, std::vector<ChannelSpec>{}));
  });
}

TEST(ChannelAgreement, NamesBothEndsThatDoNotFit) {
  // Ranks 2 and 3 exchange their bytes, so that lengths add up to the same.
  const auto crossed = [](int rank) -> std::vector<ChannelSpec> {
    if (rank < 2) return {end_to(rank + 2, true, 8 + rank)};
    return {end_to(rank - 2, false, 8 + (3 - rank))};
  };
  expect_on_all<Mismatch>(5, crossed, "rank 0 sends 8 bytes to rank 2 (tag 0), but rank 2 expects 9 bytes");
  const auto alone = [](int rank) -> std::vector<ChannelSpec> {
    return rank == 3 ? std::vector{end_to(1, true, 8)} : std::vector<ChannelSpec>{};
  };
  expect_on_all<Mismatch>(5, alone, "rank 3 sends 8 bytes to rank 1 (tag 0), but rank 1 does not receive");
}

TEST(ChannelAgreement, RefusesWhatIsThereTwice) {
  // Both ends are there twice, so the digests fit.
  const auto twice = [](int rank) -> std::vector<ChannelSpec> {
    if (rank > 1) return {};
    return {end_to(1 - rank, rank == 0, 8), end_to(1 - rank, rank == 0, 8)};
  };
  expect_on_all<BadInput>(3, twice, "need different tags");
}

}  // namespace
}  // namespace onehop
