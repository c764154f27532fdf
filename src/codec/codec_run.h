// Encoding and decoding without checks, for plans: any number of elements of any type that the codec takes, by the
// loops of codec_loops.h. The caller guarantees that both sides are long enough (`encoded_bytes`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "onehop/codec_table.h"

namespace onehop::detail {

struct CodecLoops;
struct CodecSet;
struct Pair;

void encode(Codec codec, ElementType type, const std::byte* source, std::int64_t elements, std::byte* wire) noexcept;
void decode(Codec codec, ElementType type, const std::byte* wire, std::int64_t elements, std::byte* target) noexcept;
// Not for ElementType::bytes.
void decode_add(Codec codec, ElementType type, const std::byte* wire, std::int64_t elements,
                std::byte* target) noexcept;

// Encodes and decodes float32 numbers in one pass, and stores the result in `target` or adds it there. Also writes the
// encoded bytes to `wire`, unless that is null.
void round(Codec codec, const std::byte* source, std::int64_t elements, std::byte* wire, std::byte* target) noexcept;
void round_add(Codec codec, const std::byte* source, std::int64_t elements, std::byte* wire,
               std::byte* target) noexcept;

// The sum (or mean) of this rank's numbers, rounded, and another rank's encoded ones. Writes the encoded sum to `wire`
// and the rounded sum to `target`, which may be pair.own. Returns false and does nothing if the loops in use have no
// function for it.
[[nodiscard]] bool reduce(Codec codec, const Pair& pair, std::int64_t elements, std::byte* wire,
                          std::byte* target) noexcept;

// The loops that may run at cpu::level(), the best first. Without use_codecs, the best runs.
[[nodiscard]] std::vector<const CodecSet*> available_codecs();

// For tests and benchmarks: sets the loops that the functions above use; null restores those of cpu::level().
void use_codecs(const CodecSet* set) noexcept;

// For tests: a codec more as long as the object lives, with the number `codec_count`.
class AddedCodec {
 public:
  AddedCodec(const CodecInfo& added, const CodecLoops& loops);
  ~AddedCodec();
  AddedCodec(const AddedCodec&) = delete;
  AddedCodec& operator=(const AddedCodec&) = delete;
};
void use_added(const CodecLoops* loops) noexcept;

}  // namespace onehop::detail
