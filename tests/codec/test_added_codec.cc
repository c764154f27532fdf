// A codec is an entry of the table and its loops: one that is added here works in names, sizes, schedules, plans,
// all-reduces and their tables.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "onehop/collectives/collectives.h"
#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "src/codec/codec_loops.h"
#include "src/codec/codec_run.h"
#include "tests/support/ranks.h"

namespace onehop {
namespace {

// The sign, the exponent and the first three bits of the mantissa of each number, in two bytes.
constexpr std::uint32_t kept = 0xfff00000;

float cut(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & kept); }

void encode_cut(const std::byte* source, std::int64_t groups, std::byte* wire) {
  for (std::int64_t i = 0; i < groups * detail::group_elements; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, source + 4 * i, sizeof bits);
    const auto upper = static_cast<std::uint16_t>((bits & kept) >> 16U);
    std::memcpy(wire + 2 * i, &upper, sizeof upper);
  }
}

template <bool adding>
void decode_cut(const std::byte* wire, std::int64_t groups, std::byte* target) {
  for (std::int64_t i = 0; i < groups * detail::group_elements; ++i) {
    std::uint16_t upper;
    float before;
    std::memcpy(&upper, wire + 2 * i, sizeof upper);
    std::memcpy(&before, target + 4 * i, sizeof before);
    const auto number = std::bit_cast<float>(std::uint32_t{upper} << 16U);
    const float after = adding ? before + number : number;
    std::memcpy(target + 4 * i, &after, sizeof after);
  }
}

template <bool adding>
void round_cut(const std::byte* source, std::int64_t groups, std::byte* wire, std::byte* target) {
  std::vector<std::byte> here(static_cast<std::size_t>(groups * detail::group_elements * 2));
  std::byte* const to = wire == nullptr ? here.data() : wire;
  encode_cut(source, groups, to);
  decode_cut<adding>(to, groups, target);
}

constexpr detail::CodecLoops loops{encode_cut, decode_cut<false>, decode_cut<true>, round_cut<false>, round_cut<true>};
constexpr CodecInfo entry{.name = "cut", .block_bytes = 2, .most_ranks = 3, .faster_above = {1000, 2000}};
constexpr auto cut_codec = static_cast<Codec>(codec_count);

class AddedCodec : public ::testing::Test {
 private:
  detail::AddedCodec added_{entry, loops};
};

TEST_F(AddedCodec, HasANameAndASize) {
  EXPECT_EQ(codec_from_string("cut"), cut_codec);
  EXPECT_EQ(to_string(cut_codec), "cut");
  EXPECT_EQ(encoded_bytes(cut_codec, ElementType::float64, 33), 66);
}

TEST_F(AddedCodec, IsInTheTablesOfAllReduces) {
  using namespace collectives;
  const ReduceTables tables = built_in_reduce_tables();
  EXPECT_EQ(table_for(tables, ReducePlace::shared_memory, 2).compress_above.back(), 1000);
  EXPECT_EQ(table_for(tables, ReducePlace::shared_memory, 3).compress_above.back(), 2000);
  EXPECT_EQ(reduce_tables_from_json(to_json(tables)), tables);
}

TEST(AddedCodecs, AreMissingInOlderTables) {
  const std::string older = collectives::to_json(collectives::built_in_reduce_tables());
  const detail::AddedCodec added(entry, loops);
  const auto tables = collectives::reduce_tables_from_json(older);
  EXPECT_EQ(tables.front().compress_above.back(), collectives::ReduceTable::never);
}

TEST_F(AddedCodec, SendsHalosAndAllReduces) {
  const Schedule schedule = halo({.extents = {20},
                                  .grid = {2},
                                  .widths = {{1, 1}},
                                  .periodic = {true},
                                  .element_bytes = {4},
                                  .codec = cut_codec,
                                  .types = {ElementType::float32}});
  testing::on_threads(2, [&](const Group& group) {
    std::vector<float> field(12, 1.3F);
    const std::vector arrays{std::as_writable_bytes(std::span(field))};
    Plan plan(group, schedule, arrays);
    plan.run();
    EXPECT_EQ(field.front(), cut(1.3F));
    EXPECT_EQ(plan.counters().bytes_sent, count(schedule).ranks.front().bytes_sent);
    std::vector<float> mine(3000, 1.3F);
    collectives::Collectives(group)
        .allreduce({3000, ElementType::float32, collectives::ReduceOp::sum, cut_codec})
        .run(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(mine)));
    EXPECT_EQ(mine, std::vector<float>(3000, cut(2 * cut(1.3F))));
  });
  testing::on_threads(4, [&](const Group& group) {
    EXPECT_THROW((void)collectives::Collectives(group).allreduce(
                     {3000, ElementType::float32, collectives::ReduceOp::sum, cut_codec}),
                 BadInput);
  });
}

}  // namespace
}  // namespace onehop
