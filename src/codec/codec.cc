#include "onehop/codec.h"

#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>

#include "src/base/checked.h"
#include "src/base/cpu.h"
#include "src/base/names.h"
#include "src/base/text.h"
#include "src/codec/codec_run.h"

namespace onehop {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats on the wire are little-endian");

constexpr detail::NamedValue<Codec> codecs[] = {{Codec::raw, "raw"}, {Codec::fp16, "fp16"}, {Codec::bf16, "bf16"},
                                                {Codec::fp8, "fp8"}, {Codec::q8, "q8"},     {Codec::q6, "q6"},
                                                {Codec::q4, "q4"},   {Codec::q3, "q3"}};

static_assert(std::size(codecs) == codec_count, "expected a name for each codec");

// Compilers write a value of an enumeration by its name if it has one.
template <Codec codec>
constexpr bool has_name() {
  return std::string_view(__PRETTY_FUNCTION__).find("Codec::") != std::string_view::npos;
}
static_assert(has_name<static_cast<Codec>(codec_count - 1)>());
static_assert(!has_name<static_cast<Codec>(codec_count)>(), "codec_count leaves out a codec");

bool is_floating(ElementType type) noexcept {
  return type == ElementType::float32 || type == ElementType::float64 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

struct BlockSize {
  std::int64_t elements;
  std::int64_t bytes;
};

constexpr BlockSize block_size(Codec codec) noexcept {
  switch (codec) {
    case Codec::raw:
      return {1, 0};  // those of the type
    case Codec::fp16:
    case Codec::bf16:
      return {1, 2};
    case Codec::fp8:
    case Codec::q8:
      return {32, 34};
    case Codec::q6:
      return {32, 26};
    case Codec::q4:
      return {32, 18};
    case Codec::q3:
      return {32, 14};
  }
  return {0, 0};
}
static_assert(detail::of_all_codecs([](Codec codec) { return block_size(codec).elements > 0; }),
              "expected a size of blocks for each codec");

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

std::string_view to_string(Codec codec) { return detail::name_of(codec, codecs); }

Codec codec_from_string(std::string_view name) { return detail::value_of(name, codecs, "a codec"); }

bool takes(Codec codec, ElementType type) noexcept { return codec == Codec::raw || is_floating(type); }

int most_ranks(Codec codec) noexcept { return codec == Codec::q3 ? 2 : std::numeric_limits<int>::max(); }

std::int64_t block_elements(Codec codec) noexcept { return block_size(codec).elements; }

std::int64_t encoded_bytes(Codec codec, ElementType type, std::int64_t elements) {
  if (!takes(codec, type)) {
    throw BadInput("codec " + std::string(to_string(codec)) +
                   " is for float32, float64, float16 and bfloat16, found an array of " + std::string(to_string(type)) +
                   ": give the array its type, or use codec raw");
  }
  if (elements < 0) throw BadInput("expected 0 elements or more, found " + std::to_string(elements));
  const BlockSize block = block_size(codec);
  const std::int64_t block_bytes = codec == Codec::raw ? bytes_of_one(type) : block.bytes;
  const std::int64_t blocks = elements / block.elements + (elements % block.elements != 0 ? 1 : 0);
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
