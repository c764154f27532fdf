// Reads OpenQASM 2 and 3 (quantum/language).
#pragma once

#include <cstdint>
#include <string>

#include "onehop/quantum/circuit.h"

namespace onehop::quantum {

struct ReadOptions {
  std::string name = "<text>";         // of the text, for messages; its stem becomes the name of the circuit
  std::string folder = ".";            // files that the program includes are in it, or in folders inside it
  std::int64_t operations = 10000000;  // maximum number of operations and steps, with loops and gates written out
  double seconds = 600;                // maximum time
  std::int64_t bytes = std::int64_t{16} << 30;  // maximum memory of the circuit
};

// Reads a program. Without a version line it is taken for version 2 if it declares a `qreg`, otherwise for version 3.
// What is known while reading (variables, loops, subroutines) is evaluated; what depends on measurements becomes
// conditions and `assign` operations. The result is valid. Throws BadInput that begins with file, line and column,
// shows the line, and says what to do.
[[nodiscard]] Circuit read_qasm(const std::string& text, const ReadOptions& options = {});

}  // namespace onehop::quantum
