// The precision of the numbers in fields and links.
#pragma once

#include <cstdint>
#include <string_view>

namespace onehop::lattice {

// Precision of the numbers in fields and links: 64, 32 or 16 bits. Half precision stores 16-bit integers with a common scale.
enum class Precision : std::uint8_t { half, single, full };  // "half", "single", "double"

// Throws BadInput for an unknown name.
[[nodiscard]] Precision precision_from_string(std::string_view name);
[[nodiscard]] std::string_view to_string(Precision precision);

}  // namespace onehop::lattice
