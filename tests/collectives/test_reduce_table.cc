#include "onehop/collectives/reduce_table.h"

#include <gtest/gtest.h>

#include "onehop/collectives/collectives.h"
#include "onehop/error.h"
#include "tests/support/ranks.h"

namespace onehop::collectives {
namespace {

constexpr std::int64_t kib = 1 << 10;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(ReduceTable, GoesThroughJson) {
  ReduceTables tables = built_in_reduce_tables();
  tables[0].compress_above[static_cast<std::size_t>(Codec::q6)] = ReduceTable::never;
  EXPECT_EQ(reduce_tables_from_json(to_json(tables)), tables);
}

TEST(ReduceTable, FirstThatFits) {
  const ReduceTables tables = built_in_reduce_tables();
  EXPECT_EQ(table_for(tables, ReducePlace::shared_memory, 2).ranks, 2);
  EXPECT_EQ(table_for(tables, ReducePlace::shared_memory, 3).ranks, 0);
  EXPECT_TRUE(table_for(tables, ReducePlace::shared_memory, 3).in_memory());
  EXPECT_FALSE(table_for(tables, ReducePlace::network, 2).in_memory());
  EXPECT_EQ(table_for(tables, ReducePlace::cards, 4).rule(128 << 10, false).algorithm, ReduceAlgorithm::one_shot);
  EXPECT_EQ(table_for(tables, ReducePlace::cards, 8).rule(128 << 10, false).algorithm, ReduceAlgorithm::two_shot);
  const ReduceTable table{.raw = {{100, ReduceAlgorithm::one_shot, 256}, {1000, ReduceAlgorithm::two_shot, 512}, {}},
                          .encoded = {{}}};
  EXPECT_EQ(table.rule(100, false).chunk_bytes, 256);
  EXPECT_EQ(table.rule(101, false).chunk_bytes, 512);
  EXPECT_EQ(table.rule(1001, false), ReduceRule{});
  EXPECT_EQ(table.rule(5, true), ReduceRule{});
}

TEST(ReduceTable, SaysWhatIsWrong) {
  const std::string good = to_json(built_in_reduce_tables());
  for (const auto& [what, by] :
       {std::pair{"one_shot", "three_shot"}, std::pair{"shared_memory", "pigeons"},
        std::pair{"\"chunk_bytes\": 65536", "\"chunk_bytes\": 5"}, std::pair{"\"up_to\": 2097152", "\"up_to\": 1"},
        std::pair{"\"q6\"", "\"q5\""}, std::pair{"null", "7"}}) {
    EXPECT_THROW((void)reduce_tables_from_json(replaced(good, what, by)), BadInput) << what;
  }
  // There are two tables of the network.
  const std::string one_less = replaced(good, "\"network\"", "\"shared_memory\"");
  EXPECT_THROW((void)reduce_tables_from_json(replaced(one_less, "\"network\"", "\"shared_memory\"")), BadInput);
  for (const int ranks : {0, 2, 3}) {  // in front of the table of two ranks, which would never be found, or twice
    ReduceTables tables = built_in_reduce_tables();
    tables.insert(tables.begin(), tables.front());
    tables.front().ranks = ranks;
    EXPECT_THROW((void)reduce_tables_from_json(to_json(tables)), BadInput) << ranks;
  }
  EXPECT_THROW((void)reduce_tables_from_json("[]"), BadInput);
  EXPECT_THROW((void)reduce_tables_from_json("{"), BadInput);
}

TEST(ReduceTable, DecidesWhatAutomaticIs) {
  onehop::testing::on_threads(2, [](const Group& group) {
    const Collectives collectives(group);
    const auto chosen = [&](std::int64_t bytes, Codec codec) {
      return collectives.allreduce({bytes / 4, ElementType::float32, ReduceOp::sum, codec}).algorithm();
    };
    for (const Codec codec : {Codec::raw, Codec::q8}) {
      for (const std::int64_t bytes : {kib, 64 * kib, 4096 * kib}) {
        EXPECT_EQ(chosen(bytes, codec), collectives.table().rule(bytes, codec != Codec::raw).algorithm);
      }
    }
  });
}

}  // namespace
}  // namespace onehop::collectives
