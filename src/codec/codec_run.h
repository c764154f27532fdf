// Encoding and decoding without checks, for plans: any number of elements of any type that the codec takes, by the
// loops of codec_loops.h. The caller has made sure that both sides are long enough (`encoded_bytes`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "onehop/codec.h"

namespace onehop::detail {

struct CodecSet;
struct Pair;

void encode(Codec codec, ElementType type, const std::byte* source, std::int64_t elements, std::byte* wire) noexcept;
void decode(Codec codec, ElementType type, const std::byte* wire, std::int64_t elements, std::byte* target) noexcept;
// Not for ElementType::bytes.
void decode_add(Codec codec, ElementType type, const std::byte* wire, std::int64_t elements,
                std::byte* target) noexcept;

// What float32 numbers become on the wire and back, in one go (or added to what is there); the wire itself unless it is
// null.
void round(Codec codec, const std::byte* source, std::int64_t elements, std::byte* wire, std::byte* target) noexcept;
void round_add(Codec codec, const std::byte* source, std::int64_t elements, std::byte* wire,
               std::byte* target) noexcept;

// A sum (or mean) of two: of own numbers and of what came from another rank, both rounded. The sum goes to `wire`,
// rounded to `target`, which may be pair.own. False, and nothing is done, if the loops in use have no way of their own
// for it.
[[nodiscard]] bool reduce(Codec codec, const Pair& pair, std::int64_t elements, std::byte* wire,
                          std::byte* target) noexcept;

// The loops that may run at cpu::level(), the best first: without use_codecs, that one runs.
[[nodiscard]] std::vector<const CodecSet*> available_codecs();

// For tests and benchmarks: the loops that the functions above use from now on; null returns to those of cpu::level().
void use_codecs(const CodecSet* set) noexcept;

}  // namespace onehop::detail
