// The precision of the numbers in fields and links.
#pragma once

#include <cstdint>
#include <string_view>

namespace onehop::lattice {

// The precision of the numbers in fields and links: 16, 32 or 64 bits, from the lowest to the highest. Half precision
// stores 16-bit integers with a common scale. The names are "half", "single" and "double".
enum class Precision : std::uint8_t { half, single, double_ };

// Throws BadInput for an unknown name.
[[nodiscard]] Precision precision_from_string(std::string_view name);
[[nodiscard]] std::string_view to_string(Precision precision);

}  // namespace onehop::lattice
