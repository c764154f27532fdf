// A `Codec` says what the bytes of a transfer look like on the wire. `raw` sends elements as they lie in memory; the others
// send fewer bytes and round. docs/reference/codecs.md has every format bit by bit, with its error bound.
//
// Numbers are encoded in blocks that know nothing of each other: 32 numbers for the codecs with a scale, one number for the
// others. A last block that is not full is padded with zeros, so the wire length depends on the count alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "onehop/element_type.h"

namespace onehop {

enum class Codec : std::uint8_t { raw, fp16, bf16, fp8, q8, q6, q4 };

[[nodiscard]] std::string_view to_string(Codec codec);

// Throws BadInput for an unknown name and lists the known ones.
[[nodiscard]] Codec codec_from_string(std::string_view name);

// Every codec takes the four floating-point types, `raw` takes all types.
[[nodiscard]] bool takes(Codec codec, ElementType type) noexcept;

// How many numbers share a scale: 32, or 1 for codecs without one.
[[nodiscard]] std::int64_t block_elements(Codec codec) noexcept;

// Bytes on the wire for `elements` numbers (single bytes for ElementType::bytes). Throws BadInput where the codec does not
// take the type, and beyond 2^63.
[[nodiscard]] std::int64_t encoded_bytes(Codec codec, ElementType type, std::int64_t elements);

// Encodes all of `source`, whose length must be whole numbers of the type, into `wire`, whose length must be what
// encoded_bytes says. Neither needs an alignment. Throws BadInput where a length or the type does not fit.
void encode(Codec codec, ElementType type, std::span<const std::byte> source, std::span<std::byte> wire);

// The reverse: as many numbers as `target` holds.
void decode(Codec codec, ElementType type, std::span<const std::byte> wire, std::span<std::byte> target);

// Adds what arrives to what is there: one rounding to the target's type (two for float16 and bfloat16, whose sums are
// float32 sums rounded).
void decode_add(Codec codec, ElementType type, std::span<const std::byte> wire, std::span<std::byte> target);

}  // namespace onehop
