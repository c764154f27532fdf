// Machines in JSON, the form in which Python passes machine files to the simulator.
#include "onehop/machine/machine.h"

#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

const std::size_t bytes_per_byte = 64;

void read_input(std::string_view input) {
  const Machine machine = Machine::from_json(input);
  require(Machine::from_json(machine.to_json(-1)) == machine, "a machine that was written is read unchanged");
}

}  // namespace onehop::fuzz
