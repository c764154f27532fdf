#include "onehop/lossless.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/cpu.h"
#include "src/base/text.h"
#include "src/codec/lossless_steps.h"

namespace onehop {
namespace {

using Chunk = detail::LosslessChunk;
using Steps = detail::LosslessSteps;
using Octets = Chunk::Octets;

constexpr std::size_t chunk = Chunk::numbers;
constexpr std::size_t header_bytes = 3;
constexpr unsigned whole_exponents = 8;  // the width of exponents without a base
constexpr std::uint8_t no_lower_halves = 0x10;
constexpr std::uint8_t all_zero = 0x20;
constexpr std::uint8_t width_bits = 0x0f;

const Steps& steps() {
  const cpu::Level level = cpu::level_or_best();
  const Steps* found = nullptr;
  if (level >= cpu::Level::avx512) found = detail::lossless_avx512();
  if (found == nullptr && level >= cpu::Level::avx2) found = detail::lossless_avx2();
  return found == nullptr ? detail::lossless_portable() : *found;
}

std::size_t plane_bytes(std::size_t numbers) noexcept { return (numbers + 7) / 8; }

// How the exponents of a chunk are sent: codes of `width` bits below the largest exponent, others in full.
struct Choice {
  unsigned width = 0;
  std::size_t others = 0;
};

// `at_least[w]`: how many numbers are 2^w - 1 or more below the largest exponent.
Choice cheapest(const Chunk::Counts& at_least, std::size_t numbers) noexcept {
  if (at_least[1] == 0) return {0, 0};
  Choice best{whole_exponents, 0};
  std::size_t cost = numbers;
  for (unsigned width = 1; width < whole_exponents && width * plane_bytes(numbers) < cost; ++width) {
    const std::size_t bytes = width * plane_bytes(numbers) + at_least[width];
    if (bytes >= cost) continue;
    cost = bytes;
    best = {width, at_least[width]};
  }
  return best;
}

// Calls visit(i) for every set bit i.
template <class Visit>
void for_each_bit(const Chunk::Bits& bits, const Visit& visit) {
  for (std::size_t word = 0; word < bits.size(); ++word) {
    for (std::uint64_t left = bits[word]; left != 0; left &= left - 1) {
      visit(64 * word + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
}

// Writes the exponents of a chunk, and returns the end.
std::byte* put_exponents(const Steps& with, const Octets& below, const Octets& exponents, const Choice& choice,
                         std::size_t numbers, std::byte* wire) noexcept {
  if (choice.width == whole_exponents) {
    std::memcpy(wire, exponents.data(), numbers);
    return wire + numbers;
  }
  if (choice.width == 0) return wire;
  Chunk::Bits in_full;
  if (numbers == chunk) {
    with.put_planes(below, choice.width, wire, in_full);
    wire += choice.width * Chunk::plane_bytes;
  } else {
    std::array<std::byte, (whole_exponents - 1) * Chunk::plane_bytes> planes;
    with.put_planes(below, choice.width, planes.data(), in_full);
    for (unsigned plane = 0; plane < choice.width; ++plane, wire += plane_bytes(numbers)) {
      std::memcpy(wire, planes.data() + plane * Chunk::plane_bytes, plane_bytes(numbers));
    }
  }
  // Numbers that fill the chunk up have the largest exponent, which is never in full.
  if (choice.others > 0) for_each_bit(in_full, [&](std::size_t i) { *wire++ = static_cast<std::byte>(exponents[i]); });
  return wire;
}

// Encodes `numbers` numbers, at most a chunk, and returns the end.
template <class Word>
std::byte* encode_chunk(const Steps& with, const std::byte* source, std::size_t numbers, std::byte* wire) noexcept {
  alignas(64) std::array<Word, chunk> words;
  if (numbers < chunk) {
    std::memcpy(words.data(), source, numbers * sizeof(Word));
    // The rest is filled with a number of the chunk that has the largest exponent, which no width has to reach for.
    const auto end = words.begin() + static_cast<long>(numbers);
    const Word top = *std::max_element(
        words.begin(), end, [](Word a, Word b) { return static_cast<Word>(a << 1U) < static_cast<Word>(b << 1U); });
    std::fill(end, words.end(), top);
    source = reinterpret_cast<const std::byte*>(words.data());
  }
  Chunk parts;
  const std::uint32_t any = sizeof(Word) == 4 ? with.split32(source, parts) : with.split16(source, parts);
  if (any == 0) {
    wire[0] = static_cast<std::byte>(all_zero), wire[1] = wire[2] = std::byte{0};
    return wire + header_bytes;
  }
  const bool lower = sizeof(Word) == 4 && (any & 0xffff) != 0;
  alignas(64) Octets below;
  Chunk::Counts at_least;
  const std::uint8_t largest = with.distances(parts.exponents, below, at_least);
  const Choice choice = cheapest(at_least, numbers);
  wire[0] = static_cast<std::byte>(choice.width | (sizeof(Word) == 4 && !lower ? no_lower_halves : 0U));
  wire[1] = static_cast<std::byte>(choice.width == whole_exponents ? 0 : largest);
  wire[2] = static_cast<std::byte>(choice.others);
  wire = put_exponents(with, below, parts.exponents, choice, numbers, wire + header_bytes);
  std::memcpy(wire, parts.upper.data(), numbers);
  wire += numbers;
  if (!lower) return wire;
  std::memcpy(wire, parts.lower.data(), numbers * 2);
  return wire + numbers * 2;
}

[[noreturn]] void throw_damaged(const std::string& what) {
  throw BadInput("expected bytes that lossless_encode has written, found " + what +
                 "; encode and decode with the same type and number of elements");
}

// Takes bytes from the wire, and throws if there are too few.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> wire) : wire_(wire) {}
  const std::byte* take(std::size_t bytes) {
    if (bytes > wire_.size() - at_)
      throw_damaged(base::counted(static_cast<std::int64_t>(wire_.size()), "byte") + ", which are too few");
    const std::byte* const found = wire_.data() + at_;
    at_ += bytes;
    return found;
  }
  [[nodiscard]] std::size_t left() const noexcept { return wire_.size() - at_; }

 private:
  std::span<const std::byte> wire_;
  std::size_t at_ = 0;
};

void take_exponents(const Steps& with, Reader& reader, unsigned width, std::uint8_t largest, std::size_t others,
                    std::size_t numbers, Octets& exponents) {
  if (width == whole_exponents) {
    std::memcpy(exponents.data(), reader.take(numbers), numbers);
    return;
  }
  std::array<std::byte, (whole_exponents - 1) * Chunk::plane_bytes> padded;
  const std::byte* planes = reader.take(width * plane_bytes(numbers));
  if (numbers < chunk) {
    padded = {};
    for (unsigned plane = 0; plane < width; ++plane) {
      std::memcpy(padded.data() + plane * Chunk::plane_bytes, planes + plane * plane_bytes(numbers),
                  plane_bytes(numbers));
    }
    planes = padded.data();
  }
  Chunk::Bits in_full;
  with.take_planes(planes, width, largest, exponents, in_full);
  const std::byte* const given = reader.take(others);
  if (width == 0 || others == 0) return;
  std::size_t used = 0;
  for_each_bit(in_full, [&](std::size_t i) {
    if (i >= numbers) return;
    if (used == others) throw_damaged("more exponents in full than its header says");
    exponents[i] = std::to_integer<std::uint8_t>(given[used++]);
  });
  if (used != others) throw_damaged("fewer exponents in full than its header says");
}

template <class Word>
void decode_chunk(const Steps& with, Reader& reader, std::size_t numbers, std::byte* target) {
  const std::byte* const header = reader.take(header_bytes);
  const auto flags = std::to_integer<std::uint8_t>(header[0]);
  const auto others = std::to_integer<std::size_t>(header[2]);
  if (flags == all_zero) {
    std::memset(target, 0, numbers * sizeof(Word));
    return;
  }
  const unsigned width = flags & width_bits;
  const bool whole = width == whole_exponents;
  const unsigned known = width_bits | (sizeof(Word) == 4 ? no_lower_halves : 0U);
  if ((flags & ~known) != 0 || width > whole_exponents || ((whole || width == 0) && others != 0)) {
    throw_damaged("the header " + std::to_string(flags) + " of a chunk");
  }
  Chunk parts;
  if (numbers < chunk) parts = {};  // all of it is joined below
  take_exponents(with, reader, width, std::to_integer<std::uint8_t>(header[1]), others, numbers, parts.exponents);
  std::memcpy(parts.upper.data(), reader.take(numbers), numbers);
  if constexpr (sizeof(Word) == 4) {
    if ((flags & no_lower_halves) != 0) {
      parts.lower.fill(0);
    } else {
      std::memcpy(parts.lower.data(), reader.take(numbers * 2), numbers * 2);
    }
  }
  const auto join = sizeof(Word) == 4 ? with.join32 : with.join16;
  if (numbers == chunk) {
    join(parts, target);
    return;
  }
  alignas(64) std::array<std::byte, chunk * sizeof(Word)> words;
  join(parts, words.data());
  std::memcpy(target, words.data(), numbers * sizeof(Word));
}

// Checks the type and returns the bytes of a number.
std::int64_t number_bytes(ElementType type) {
  if (type == ElementType::float32) return 4;
  if (type == ElementType::bfloat16) return 2;
  throw BadInput("expected float32 or bfloat16 to compress without loss, found an array of " +
                 std::string(to_string(type)));
}

std::size_t elements_in(ElementType type, std::size_t bytes) {
  const auto each = static_cast<std::size_t>(number_bytes(type));
  if (bytes % each != 0) {
    throw BadInput("expected whole numbers of type " + std::string(to_string(type)) + ", found " +
                   base::counted(static_cast<std::int64_t>(bytes), "byte"));
  }
  return bytes / each;
}

}  // namespace

std::int64_t lossless_most_bytes(ElementType type, std::int64_t elements) {
  const std::int64_t each = number_bytes(type);
  if (elements < 0) throw BadInput("expected 0 elements or more, found " + std::to_string(elements));
  const std::int64_t chunks = elements / static_cast<std::int64_t>(chunk) + 1;
  return detail::checked_multiply(chunks, static_cast<std::int64_t>(chunk) * each + 3, "the bytes of a transfer");
}

std::int64_t lossless_encode(ElementType type, std::span<const std::byte> source, std::span<std::byte> wire) {
  const std::size_t elements = elements_in(type, source.size());
  const std::int64_t most = lossless_most_bytes(type, static_cast<std::int64_t>(elements));
  if (static_cast<std::int64_t>(wire.size()) < most) {
    throw BadInput("expected room for " + base::counted(most, "byte") + ", found " + std::to_string(wire.size()) +
                   "; use a buffer of lossless_most_bytes(...) bytes");
  }
  const auto encode = type == ElementType::float32 ? encode_chunk<std::uint32_t> : encode_chunk<std::uint16_t>;
  const auto each = static_cast<std::size_t>(number_bytes(type));
  const Steps& with = steps();
  std::byte* end = wire.data();
  for (std::size_t i = 0; i < elements; i += chunk) {
    end = encode(with, source.data() + i * each, std::min(chunk, elements - i), end);
  }
  return end - wire.data();
}

void lossless_decode(ElementType type, std::span<const std::byte> wire, std::span<std::byte> target) {
  const std::size_t elements = elements_in(type, target.size());
  const auto decode = type == ElementType::float32 ? decode_chunk<std::uint32_t> : decode_chunk<std::uint16_t>;
  const auto each = static_cast<std::size_t>(number_bytes(type));
  const Steps& with = steps();
  Reader reader(wire);
  for (std::size_t i = 0; i < elements; i += chunk) {
    decode(with, reader, std::min(chunk, elements - i), target.data() + i * each);
  }
  if (reader.left() != 0) {
    throw_damaged(base::counted(static_cast<std::int64_t>(reader.left()), "byte") + " after the last number");
  }
}

}  // namespace onehop
