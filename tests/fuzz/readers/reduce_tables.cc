// The tables of the all-reduce in tuning files.
#include <string>

#include "onehop/collectives/reduce_table.h"
#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

using namespace collectives;

const std::size_t bytes_per_byte = 10;
// The reader refuses longer texts, and makes a tree of all values, which takes up to 34 bytes for each byte.
const std::size_t allowance = longest_reduce_tables * 40;

std::vector<std::string> large_inputs() { return {repeated("[", "[]", ",", "]")}; }

void read_input(std::string_view input) {
  const std::string tried(input);
  const ReduceTables tables = measured([&] { return reduce_tables_from_json(tried); });
  require(reduce_tables_from_json(to_json(tables)) == tables, "tables that were written are read unchanged");
  for (const auto place : {ReducePlace::network, ReducePlace::shared_memory, ReducePlace::cards})
    (void)table_for(tables, place, 3).rule(1 << 20, place == ReducePlace::shared_memory);
}

}  // namespace onehop::fuzz
