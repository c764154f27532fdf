// Plans whose transfers have codecs, compared with the naive executor.
#include <gtest/gtest.h>

#include <array>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "onehop/verify.h"
#include "tests/support/naive_execute.h"
#include "tests/support/plan_check.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

using testing::cut;
using testing::expect_plan_does;
using testing::Memory;
using testing::on_threads;
using testing::random_numbers;

// Blocks are never cut, for any slots and chunks; local copies are never rounded.
TEST(PlanCodec, HalosWithCodecs) {
  for (const Codec codec : {Codec::fp16, Codec::q8, Codec::q6}) {
    HaloSpec spec{.extents = {7, 5, 10},
                  .grid = {3, 1, 1},
                  .widths = {{1, 2}, {2, 1}, {1, 1}},
                  .periodic = {true, true, false},
                  .corners = true,
                  .element_bytes = {4, 24, 8},
                  .codec = codec,
                  .types = {ElementType::float32, ElementType::float64, ElementType::float32}};
    const Schedule schedule = halo(spec);
    ASSERT_TRUE(verify(schedule).empty());
    EXPECT_EQ(Schedule::from_json(schedule.to_json()), schedule);
    const Memory memory = random_numbers(schedule, 5);
    testing::expect_on_threads(schedule, memory, {{}, cut(2, 400, 100), cut(1, 64, 1)});
  }
}

// Contiguous pieces, scattered pieces and sums, all in one message with parts that are not encoded.
TEST(PlanCodec, TransfersWithCodecsCombine) {
  const auto place = [](int rank, Slice slice) { return Place{rank, 0, std::move(slice)}; };
  Schedule schedule{"codecs", 2, {{"u", 4, ElementType::float32, {400}}}, {Round{}}, {}};
  auto& transfers = schedule.rounds[0].transfers;
  const Slice scattered = Slice::box(201, std::array<std::int64_t, 1>{50}, std::array<std::int64_t, 1>{4});
  transfers.push_back({place(0, Slice::range(0, 50)), place(1, scattered), Combine::add, Codec::q8});
  transfers.push_back({place(0, Slice::range(50, 70)), place(1, Slice::range(0, 70)), Combine::add, Codec::q4});
  transfers.push_back({place(0, Slice::range(50, 70)), place(1, Slice::range(80, 70)), Combine::max, Codec::fp8});
  transfers.push_back({place(0, scattered), place(1, Slice::range(150, 50)), Combine::replace, Codec::q6});
  transfers.push_back({place(0, Slice::range(120, 10)), place(1, Slice::range(70, 10)), Combine::min, Codec::raw});
  transfers.push_back({place(0, Slice::range(0, 7)), place(0, Slice::range(170, 7)), Combine::add, Codec::q4});
  ASSERT_TRUE(verify(schedule).empty());
  const Memory memory = random_numbers(schedule, 6);
  testing::expect_on_threads(schedule, memory, {{}, cut(2, 100, 50), cut(1, 64, 64)});
}

TEST(PlanCodec, RanksWithDifferentCodecsDoNotMatch) {
  HaloSpec spec{.extents = {64}, .grid = {2}, .widths = {{32, 32}}, .periodic = {true}};
  spec.types = {ElementType::float64};
  spec.codec = Codec::q8;
  on_threads(2, [&](const Group& group) {
    Schedule schedule = halo(spec);
    // The same number of bytes on the wire, with another meaning.
    if (group.rank() == 1) {
      for (Transfer& transfer : schedule.rounds[0].transfers) transfer.codec = Codec::fp8;
    }
    std::vector<std::byte> array(std::size_t{96} * 8);
    const std::array spans{std::span<std::byte>(array)};
    EXPECT_THROW(Plan(group, schedule, spans), Mismatch);
  });
}

}  // namespace
}  // namespace onehop
