// What a reader's fuzz target provides. tests/fuzz/readers/main.cc calls it with inputs of libFuzzer.
#pragma once

#include <cstddef>
#include <string_view>

namespace onehop::fuzz {

// Reads one input. Throws BadInput if the input is refused. Anything else that it throws, and any violated `require`,
// is a finding.
void read_input(std::string_view input);

// The most memory that reading may take: this many bytes for each byte of input, beyond a fixed allowance.
extern const std::size_t bytes_per_byte;

// Ends the program with a message that libFuzzer reports as a finding.
void require(bool holds, const char* what);

}  // namespace onehop::fuzz
