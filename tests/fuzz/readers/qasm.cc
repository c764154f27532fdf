// OpenQASM 2 and 3.
#include <string>

#include "onehop/quantum/language.h"
#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {

// The shortest gate call, "x q;", makes an operation of 400 bytes; loops and gates write more.
const std::size_t bytes_per_byte = 512;
const std::size_t allowance = std::size_t{64} << 20U;

std::vector<std::string> large_inputs() {
  const std::string head = "OPENQASM 3; qubit q; ";
  return {repeated(head, "U(0,0,0)q;", "", ""),       repeated(head + "U(0,0,", "-", "", "1) q;"),
          repeated(head + "U(0,0,", "(", "", ""),     repeated(head, "{", "", ""),
          repeated(head, "if(1)", "", "U(0,0,0) q;"), repeated(head, "inv @ ", "", "U(0,0,0) q;")};
}

void read_input(std::string_view input) {
  const std::string tried(input);
  quantum::ReadOptions options;
  options.operations = 20000;
  options.seconds = 8;
  options.folder = "/nonexistent";
  const quantum::Circuit circuit = measured([&] { return quantum::read_qasm(tried, options); });
  circuit.validate();
}

}  // namespace onehop::fuzz
