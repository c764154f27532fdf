// Tuning files.
#include "onehop/tuning.h"

#include <string>

#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

const std::size_t bytes_per_byte = 64;

void read_input(std::string_view input) {
  const Tuning tuning = Tuning::from_json(std::string(input));
  const std::string text = tuning.to_json();
  require(Tuning::from_json(text).to_json() == text, "a tuning that was written is read unchanged");
  require(!tuning.rules.empty(), "a tuning has a rule for every size");
  (void)tuning.rule(1 << 20);
}

}  // namespace onehop::fuzz
