// The type of the numbers in an array, as reductions and codecs need it, or plain bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace onehop {

// `bytes` is for elements of any size that are only moved. float16 is IEEE 754 binary16, bfloat16 the upper half of a
// float32.
enum class ElementType : std::uint8_t { bytes, float32, float64, int32, int64, float16, bfloat16 };

[[nodiscard]] std::string_view to_string(ElementType type);

// Throws BadInput for an unknown name and lists the known ones.
[[nodiscard]] ElementType element_type_from_string(std::string_view name);

// The bytes of one number of a type; 0 for `bytes`, which has none of its own.
[[nodiscard]] std::int64_t bytes_of(ElementType type);

}  // namespace onehop
