// Machines in JSON, the form in which Python passes machine files to the simulator.
#include "onehop/machine/machine.h"

#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

const std::size_t bytes_per_byte = 10;
const std::size_t allowance = small_allowance;

std::vector<std::string> large_inputs() {
  const std::string figure = R"({"value":1,"basis":"guessed","source":""})";
  const std::string level = R"({"name":"","routing":"all_to_all","extents":[2],"latency":)" + figure +
                            R"(,"overhead":)" + figure + R"(,"bandwidth":)" + figure;
  const std::string begin = R"({"onehop_machine":1,"name":"","memory_bandwidth":)" + figure + R"(,"memory":)" + figure;
  return {
      repeated("[", "1", ",", "]"),
      repeated("[", "[]", ",", "]"),
      repeated(begin + R"(,"levels":[)", level + "}", ",", "]}"),
      repeated(begin + R"(,"levels":[)" + level + R"(,"taper":[)", "1", ",", "]}]}"),
      repeated(begin + R"(,"copies":{"basis":"guessed","source":"","points":[)", "[1,1]", ",", R"(]},"levels":[]})"),
      repeated(R"({"onehop_machine":1,"name":")", "a", "", R"("})")};
}

void read_input(std::string_view input) {
  const Machine machine = measured([&] { return Machine::from_json(input); });
  require(Machine::from_json(machine.to_json(-1)) == machine, "a machine that was written is read unchanged");
}

}  // namespace onehop::fuzz
