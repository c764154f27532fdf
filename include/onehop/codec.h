// A `Codec` defines the format of a transfer on the wire. `raw` sends elements unchanged; the others round the numbers
// and send fewer bytes. docs/reference/codecs.md specifies every format bit by bit, with its error bound.
//
// Numbers are encoded in independent blocks: 32 numbers for codecs with a scale, one number for the others. The last
// block is padded with zeros, so the length on the wire depends only on the number of elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "onehop/element_type.h"

namespace onehop {

enum class Codec : std::uint8_t { raw, fp16, bf16, fp8, q8, q6, q4, q3 };

// Number of codecs.
inline constexpr std::size_t codec_count = 8;

[[nodiscard]] std::string_view to_string(Codec codec);

// Throws BadInput for an unknown name and lists the known ones.
[[nodiscard]] Codec codec_from_string(std::string_view name);

// Whether a codec can encode a type: `raw` takes all types, the others take the four floating-point types.
[[nodiscard]] bool takes(Codec codec, ElementType type) noexcept;

// The largest group whose reductions take a codec: 2 ranks for q3, whose rounding is too coarse for longer sums; others
// have no limit (the largest int).
[[nodiscard]] int most_ranks(Codec codec) noexcept;

// Numbers that share a scale: 32, or 1 for codecs without a scale.
[[nodiscard]] std::int64_t block_elements(Codec codec) noexcept;

// Bytes on the wire for `elements` numbers (for single bytes if the type is ElementType::bytes). Throws BadInput if the
// codec does not take the type, and for results of 2^63 and more.
[[nodiscard]] std::int64_t encoded_bytes(Codec codec, ElementType type, std::int64_t elements);

// Encodes `source` into `wire`. The length of `source` must be a multiple of the type's size, that of `wire` must be
// encoded_bytes(...). No alignment is needed. Throws BadInput for a wrong length or type.
void encode(Codec codec, ElementType type, std::span<const std::byte> source, std::span<std::byte> wire);

// Decodes as many numbers as `target` holds. Throws like encode().
void decode(Codec codec, ElementType type, std::span<const std::byte> wire, std::span<std::byte> target);

// Decodes numbers and adds them to those in `target`. Each sum is rounded once to the type of the target; float16 and
// bfloat16 sums are first rounded to float32.
void decode_add(Codec codec, ElementType type, std::span<const std::byte> wire, std::span<std::byte> target);

}  // namespace onehop
