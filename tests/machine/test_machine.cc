#include "onehop/machine/machine.h"

#include <gtest/gtest.h>

#include <functional>

#include "onehop/error.h"
#include "tests/machine/machines.h"
#include "tests/support/thrown.h"

namespace onehop {
namespace {

using testing::guess;
using testing::level;
using testing::message_of;

Machine cluster() {
  Machine machine;
  machine.name = "cluster";
  machine.title = "two levels";
  machine.levels = {level("host", Routing::all_to_all, {4}), level("system", Routing::fat_tree, {18, 10})};
  machine.levels[1].taper = {0.5};
  machine.levels[1].interfaces = 2;
  machine.levels[1].injection = guess(2e10);
  machine.memory_bandwidth = guess(1e11);
  machine.memory = guess(1e10);
  return machine;
}

Machine torus(std::vector<std::int64_t> extents) {
  Machine machine = cluster();
  machine.levels[1] = level("system", Routing::torus, std::move(extents));
  return machine;
}

TEST(Machine, JsonRestoresItExactly) {
  Machine machine = cluster();
  machine.levels.push_back(level("site", Routing::dragonfly, {2, 4, 3}));
  machine.levels[2].local_bandwidth = guess(1.0 / 3.0);
  machine.levels[2].group_bandwidth = {0.1, Basis::published, "a \"paper\""};
  machine.levels[2].topology = "counted";
  machine.levels[2].gap = {1e-9, Basis::measured, "a clock"};
  EXPECT_EQ(machine.processors(), 4 * 180 * 24);
  EXPECT_EQ(Machine::from_json(machine.to_json()), machine);
  EXPECT_EQ(Machine::from_json(machine.to_json(2)), machine);
}

TEST(Machine, CheckNamesTheFirstWrongValue) {
  const auto found = [](const std::function<void(Machine&)>& spoil) {
    Machine machine = cluster();
    spoil(machine);
    return message_of<BadInput>([&] { machine.check(); });
  };
  EXPECT_EQ(found([](Machine&) {}), "");
  EXPECT_EQ(found([](Machine& m) { m.levels[0].bandwidth.value = -1; }),
            "levels[0].bandwidth: expected a finite number above 0, found -1");
  EXPECT_EQ(found([](Machine& m) { m.levels[1].latency.source.clear(); }),
            "levels[1].latency: expected the source of the number, found none");
  EXPECT_EQ(found([](Machine& m) { m.levels[1].gap.value = -1e-9; }),
            "levels[1].gap: expected a finite number of at least 0, found -1e-09");
  EXPECT_EQ(found([](Machine& m) { m.levels[1].taper.clear(); }),
            "levels[1].taper: expected one number per tier but the last, 1, found 0 numbers");
  EXPECT_EQ(found([](Machine& m) { m.levels[0].extents = {2, 2}; }),
            "levels[0].extents: expected one number, the members, found 2 numbers");
  EXPECT_EQ(found([](Machine& m) { m.levels[0].extents = {0}; }),
            "levels[0].extents: expected numbers of at least 1, found 0");
  EXPECT_EQ(found([](Machine& m) { m.levels[1].injection = {}; }),
            "levels[1].injection: expected the bandwidth that 2 interfaces share, found none");
  EXPECT_EQ(found([](Machine& m) { m.levels[1].name = "host"; }),
            "levels[1].name: expected a different name for every level, found \"host\" twice");
  EXPECT_EQ(found([](Machine& m) { m.levels[0].group_bandwidth = guess(1); }),
            "levels[0].group_bandwidth: expected none, this is no dragonfly, found 1");
  EXPECT_EQ(found([](Machine& m) { m.levels.clear(); }), "levels: expected 1 to 8 levels, found 0");
  EXPECT_NE(found([](Machine& m) { m.levels[1].extents = {1 << 20, 1 << 20}; }), "");
  EXPECT_NE(found([](Machine& m) { m.memory.value = 0; }), "");
}

TEST(Machine, JsonIsReadStrictly) {
  const std::string good = cluster().to_json();
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string text = good;
    text.replace(text.find(old), old.size(), now);
    return message_of<BadInput>([&] { (void)Machine::from_json(text); });
  };
  EXPECT_NE(with("\"latency\"", "\"lateness\"").find("levels[0]: expected only the keys name, routing"),
            std::string::npos);
  EXPECT_NE(with("fat_tree", "thin_tree").find("levels[1].routing: expected a routing"), std::string::npos);
  EXPECT_NE(with("\"guessed\"", "\"believed\"").find("levels[0].latency.basis: expected a basis"), std::string::npos);
  EXPECT_NE(with("1e-06", "\"fast\"").find("levels[0].latency.value: expected a number"), std::string::npos);
  EXPECT_NE(with("1e-06", "-1e-06").find("levels[0].latency: expected a finite number of at least 0"),
            std::string::npos);
}

TEST(Machine, AJobGetsTheSmallestBox) {
  using Extents = std::vector<std::int64_t>;
  const Machine tree = cluster();
  EXPECT_EQ(tree.job(3).processors(), 3);
  EXPECT_EQ(tree.job(4).levels[1].extents, (Extents{1, 1}));
  // 32 hosts are 16 under each of two switches, whose links upwards stay the same.
  const Machine part = tree.job(128);
  EXPECT_EQ(part.levels[0].extents, Extents{4});
  EXPECT_EQ(part.levels[1].extents, (Extents{16, 2}));
  EXPECT_DOUBLE_EQ(part.levels[1].taper[0] * 16, 0.5 * 18);
  EXPECT_EQ(tree.job(720), tree);
  // 6 processors are 3 on each of two hosts, 7 are 4 and 3.
  EXPECT_EQ(tree.job(6).levels[0].extents, Extents{3});
  EXPECT_EQ(tree.job(6).processors(), 6);
  EXPECT_EQ(tree.job(7).levels[0].extents, Extents{4});
  EXPECT_EQ(tree.job(7).processors(), 8);
  // One processor on each of three hosts would divide evenly, but there are two hosts.
  Machine two = cluster();
  two.levels[0].extents = {2};
  two.levels[1].extents = {2, 1};
  EXPECT_EQ(two.job(3).processors(), 4);
  EXPECT_EQ(two.job(3).levels[0].extents, Extents{2});
  EXPECT_THROW((void)tree.job(721), BadInput);
  EXPECT_THROW((void)tree.job(0), BadInput);

  EXPECT_EQ(torus({8, 12, 16}).job(4 * 64).levels[1].extents, (Extents{4, 4, 4}));
  EXPECT_EQ(torus({2, 12, 16}).job(4 * 64).levels[1].extents.front(), 2);
  EXPECT_EQ(torus({24, 23, 24, 2, 3, 2}).job(4096).processors(), 4096);
  EXPECT_EQ(torus({8, 8}).job(4 * 61).levels[1].extents, (Extents{8, 8}));  // no box of 61, 62 or 63 hosts fits better
}

TEST(Machine, NamesOfEnumeratorsAreReadBack) {
  for (const auto routing :
       {Routing::all_to_all, Routing::mesh, Routing::fat_tree, Routing::torus, Routing::dragonfly}) {
    EXPECT_EQ(routing_from_string(to_string(routing)), routing);
  }
  for (const auto basis : {Basis::published, Basis::measured, Basis::guessed}) {
    EXPECT_EQ(basis_from_string(to_string(basis)), basis);
  }
}

}  // namespace
}  // namespace onehop
