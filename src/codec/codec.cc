#include "onehop/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <limits>

#include "onehop/codec_table.h"
#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/cpu.h"
#include "src/base/text.h"
#include "src/codec/codec_run.h"

namespace onehop {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats on the wire are little-endian");

constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr int any_ranks = std::numeric_limits<int>::max();

// docs/performance/collectives.md and notes/collectives.md have the measurements behind the sizes. Where two cores
// share a cache, raw is a copy between caches and faster than the arithmetic of most codecs. The rounding of q3 is too
// coarse for sums of more than two numbers.
constexpr CodecInfo built_in[] = {
    {"raw", 1, 0, 0, any_ranks, {}},
    {"fp16", 1, 2, 0, any_ranks, {256 * kib, 64 * kib}},
    {"bf16", 1, 2, 0, any_ranks, {512 * kib, 64 * kib}},
    {"fp8", 32, 34, 0, any_ranks, {16384 * kib, 4096 * kib}},
    {"q8", 32, 34, 127, any_ranks, {4096 * kib, 64 * kib}},
    {"q6", 32, 26, 31, any_ranks, {4096 * kib, 64 * kib}},
    {"q4", 32, 18, 7, any_ranks, {4096 * kib, 64 * kib}},
    {"q3", 32, 14, 3, 2, {4096 * kib, never}},
};
static_assert(std::size(built_in) == codec_count, "expected an entry for each codec");

// With room for one that a test adds. The compiler evaluates the function, so nothing can throw.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization)
constinit std::array<CodecInfo, codec_count + 1> table = [] {
  std::array<CodecInfo, codec_count + 1> all{};
  std::ranges::copy(built_in, all.begin());
  return all;
}();
constinit std::size_t known = codec_count;

bool is_floating(ElementType type) noexcept {
  return type == ElementType::float32 || type == ElementType::float64 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

std::int64_t bytes_of_one(ElementType type) { return type == ElementType::bytes ? 1 : bytes_of(type); }

// Checks both lengths and returns the number of elements.
std::int64_t elements_in(Codec codec, ElementType type, std::size_t memory, std::size_t wire) {
  const std::int64_t element_bytes = bytes_of_one(type);
  const auto bytes = static_cast<std::int64_t>(memory);
  if (bytes % element_bytes != 0) {
    throw BadInput("expected whole numbers of type " + std::string(to_string(type)) + ", found " +
                   base::counted(bytes, "byte") + ", which is not a multiple of " + std::to_string(element_bytes));
  }
  const std::int64_t elements = bytes / element_bytes;
  const std::int64_t expected = encoded_bytes(codec, type, elements);
  if (static_cast<std::int64_t>(wire) != expected) {
    throw BadInput("expected " + base::counted(expected, "byte") + " on the wire for " +
                   base::counted(elements, "number") + " with codec " + std::string(to_string(codec)) + ", found " +
                   std::to_string(wire) + "; use a buffer of encoded_bytes(...) bytes");
  }
  return elements;
}

}  // namespace

std::span<const CodecInfo> codecs() noexcept { return {table.data(), known}; }

detail::AddedCodec::AddedCodec(const CodecInfo& added, const CodecLoops& loops) {
  table[codec_count] = added;
  known = codec_count + 1;
  use_added(&loops);
}
detail::AddedCodec::~AddedCodec() { known = codec_count; }

std::string_view to_string(Codec codec) { return codec_info(codec).name; }

Codec codec_from_string(std::string_view name) {
  const auto found = std::ranges::find(codecs(), name, &CodecInfo::name);
  if (found != codecs().end()) return static_cast<Codec>(found - codecs().begin());
  std::string names;
  for (const CodecInfo& one : codecs()) names += (names.empty() ? "" : ", ") + std::string(one.name);
  throw BadInput("expected a codec (one of: " + names + "), found '" + std::string(name) + "'");
}

int most_ranks(Codec codec) noexcept { return codec_info(codec).most_ranks; }

std::int64_t block_elements(Codec codec) noexcept { return codec_info(codec).block; }

bool takes(Codec codec, ElementType type) noexcept { return codec == Codec::raw || is_floating(type); }

std::int64_t encoded_bytes(Codec codec, ElementType type, std::int64_t elements) {
  if (!takes(codec, type)) {
    throw BadInput("codec " + std::string(to_string(codec)) +
                   " is for float32, float64, float16 and bfloat16, found an array of " + std::string(to_string(type)) +
                   ": give the array its type, or use codec raw");
  }
  if (elements < 0) throw BadInput("expected 0 elements or more, found " + std::to_string(elements));
  const CodecInfo& format = codec_info(codec);
  const std::int64_t block_bytes = codec == Codec::raw ? bytes_of_one(type) : format.block_bytes;
  const std::int64_t blocks = elements / format.block + (elements % format.block != 0 ? 1 : 0);
  return detail::checked_multiply(blocks, block_bytes, "the bytes of a transfer");
}

void encode(Codec codec, ElementType type, std::span<const std::byte> source, std::span<std::byte> wire) {
  const std::int64_t elements = elements_in(codec, type, source.size(), wire.size());
  static_cast<void>(cpu::level());  // throws for a wrong ONEHOP_SIMD
  detail::encode(codec, type, source.data(), elements, wire.data());
}

void decode(Codec codec, ElementType type, std::span<const std::byte> wire, std::span<std::byte> target) {
  const std::int64_t elements = elements_in(codec, type, target.size(), wire.size());
  static_cast<void>(cpu::level());  // throws for a wrong ONEHOP_SIMD
  detail::decode(codec, type, wire.data(), elements, target.data());
}

void decode_add(Codec codec, ElementType type, std::span<const std::byte> wire, std::span<std::byte> target) {
  if (type == ElementType::bytes) throw BadInput("decode_add: expected a numeric type, found an array of bytes");
  const std::int64_t elements = elements_in(codec, type, target.size(), wire.size());
  static_cast<void>(cpu::level());  // throws for a wrong ONEHOP_SIMD
  detail::decode_add(codec, type, wire.data(), elements, target.data());
}

}  // namespace onehop
