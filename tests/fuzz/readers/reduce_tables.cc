// The tables of the all-reduce in tuning files.
#include <string>

#include "onehop/collectives/reduce_table.h"
#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

const std::size_t bytes_per_byte = 64;

void read_input(std::string_view input) {
  using namespace collectives;
  const ReduceTables tables = reduce_tables_from_json(std::string(input));
  require(reduce_tables_from_json(to_json(tables)) == tables, "tables that were written are read unchanged");
  for (const bool in_memory : {true, false}) (void)table_for(tables, in_memory, 3).rule(1 << 20, in_memory);
}

}  // namespace onehop::fuzz
