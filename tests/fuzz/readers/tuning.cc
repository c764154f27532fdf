// Tuning files.
#include "onehop/tuning.h"

#include <string>

#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

const std::size_t bytes_per_byte = 10;
const std::size_t allowance = small_allowance;

std::vector<std::string> large_inputs() {
  const std::string begin =
      R"({"onehop_tuning":1,"spins":1,"spins_oversubscribed":1,"yields":1,"slot_bytes":4096,"small_bytes":0,)"
      R"("small_slots":1,"rules":[)";
  return {repeated("[", "1", ",", "]"), repeated("[", "[]", ",", "]"), repeated(begin, "0", ",", "]}"),
          repeated(begin, R"({"up_to":1,"chunk_bytes":64,"stores":"plain"})", ",", "]}")};
}

void read_input(std::string_view input) {
  const std::string tried(input);
  const Tuning tuning = measured([&] { return Tuning::from_json(tried); });
  const std::string text = tuning.to_json();
  require(Tuning::from_json(text).to_json() == text, "a tuning that was written is read unchanged");
  require(!tuning.rules.empty(), "a tuning has a rule for every size");
  (void)tuning.rule(1 << 20);
}

}  // namespace onehop::fuzz
