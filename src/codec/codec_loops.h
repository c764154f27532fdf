// The loops of every codec, one set for each kind of processor: all write the same bytes. A loop works on groups of 32
// float32 numbers and their bytes on the wire; addresses need no alignment.
//
// This header is included where the compiler may use instructions that not every processor has. It must declare only:
// an inline function or template of external linkage compiled there could end up in the whole program.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "onehop/codec.h"

namespace onehop::detail {

inline constexpr std::int64_t group_elements = 32;

struct Pair {
  const std::byte* own = nullptr;
  const std::byte* other = nullptr;
  bool own_first = true;  // the order of addition, which decides which NaN is kept if both are NaN
  bool mean = false;
};

struct CodecLoops {
  using Encode = void (*)(const std::byte* source, std::int64_t groups, std::byte* wire);
  using Decode = void (*)(const std::byte* wire, std::int64_t groups, std::byte* target);
  // Encodes and decodes numbers in one pass. Also writes the encoded bytes to `wire`, unless that is null.
  using Round = void (*)(const std::byte* source, std::int64_t groups, std::byte* wire, std::byte* target);
  // Adds two contributions in one pass: rounds the own plain one, decodes the other, adds them, and rounds the sum.
  using Reduce = void (*)(const Pair& pair, std::int64_t groups, std::byte* wire, std::byte* target);
  Encode encode = nullptr;
  Decode decode = nullptr;
  Decode decode_add = nullptr;
  Round round = nullptr;  // target may be source
  Round round_add = nullptr;
  Reduce reduce = nullptr;  // null: use the other loops; target may be pair.own
};

// One entry per codec, by its number; that of `raw` is empty.
struct CodecSet {
  // Takes the loops of every codec but `raw`. (A sanitizer's compiler cannot compare functions with null in a constant
  // expression, so they are counted.)
  template <std::same_as<CodecLoops>... Loops>
    requires(sizeof...(Loops) + 1 == codec_count)
  consteval explicit CodecSet(const char* set_name, const Loops&... loops) : name(set_name), of{{}, loops...} {}

  const char* name;
  CodecLoops of[codec_count];
};

[[nodiscard]] const CodecSet& portable_codecs();
// Null if this build lacks the instructions. The caller checks whether the processor has them (`available_codecs`,
// codec_run.h): a source that is compiled for other processors must not run on this one, not even for that check.
[[nodiscard]] const CodecSet* avx2_codecs();
[[nodiscard]] const CodecSet* avx512_codecs();

// For blocks with infinities, NaNs or magnitudes of 2^127 and more, which the wide loops leave to the portable ones.
constexpr std::uint32_t special_magnitude = 0x7f000000;
[[nodiscard]] const CodecLoops& special_loops(Codec codec);

}  // namespace onehop::detail
