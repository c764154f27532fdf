// A `Codec` says what the bytes of a transfer look like on the wire. `raw` sends elements as they lie in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace onehop {

enum class Codec : std::uint8_t { raw };

[[nodiscard]] std::string_view to_string(Codec codec);

// Throws BadInput for an unknown name and lists the known ones.
[[nodiscard]] Codec codec_from_string(std::string_view name);

// Bytes on the wire for `elements` elements of `element_bytes` bytes each.
[[nodiscard]] std::int64_t wire_bytes(Codec codec, std::int64_t elements, std::int64_t element_bytes);

}  // namespace onehop
