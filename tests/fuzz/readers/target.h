// What a reader's fuzz target provides. tests/fuzz/readers/main.cc calls it with inputs of libFuzzer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace onehop::fuzz {

// Reads one input. Throws BadInput if the input is refused. Anything else that it throws, and any violated `require`,
// is a finding. Whatever it does beyond reading, it does after the call of `measured`.
void read_input(std::string_view input);

// Inputs of `large` bytes and of the shapes that take most memory, which libFuzzer would not find: its inputs are
// short. They are read once at the beginning, both as they are and with a question mark behind them.
std::vector<std::string> large_inputs();

inline constexpr std::size_t large = std::size_t{1} << 20U;

// The most memory that the value of an accepted input may take: this many bytes for each byte of input. A refused input
// may take 10. Both are counted beyond a fixed allowance.
extern const std::size_t bytes_per_byte;
extern const std::size_t allowance;

// Messages and the first blocks of containers.
inline constexpr std::size_t small_allowance = std::size_t{16} << 10U;

// Measures the memory that is taken while it lives.
class Measurement {
 public:
  Measurement();
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;
};

template <class Read>
auto measured(Read&& read) {
  const Measurement measurement;
  return read();
}

// Returns begin, then `part` as often as it fits with `between` between two, then end.
std::string repeated(const std::string& begin, const std::string& part, const std::string& between,
                     const std::string& end);

// Ends the program with a message that libFuzzer reports as a finding.
void require(bool holds, const char* what);

}  // namespace onehop::fuzz
