#include "onehop/lossless.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "onehop/error.h"
#include "src/base/checked.h"
#include "src/base/text.h"

namespace onehop {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t chunk = 256;  // numbers that share a base
constexpr std::size_t header_bytes = 3;
constexpr unsigned whole_exponents = 8;  // the width of exponents without a base
constexpr std::uint8_t no_lower_halves = 0x10;
constexpr std::uint8_t all_zero = 0x20;
constexpr std::uint8_t width_bits = 0x0f;

using Octets = std::array<std::uint8_t, chunk>;

// The parts of a chunk of numbers. Unused places hold what costs nothing.
struct Parts {
  alignas(64) Octets exponents;
  alignas(64) Octets upper;  // sign, and the 7 upper bits of the mantissa
  alignas(64) std::array<std::uint16_t, chunk> lower;
};

void split(const std::uint32_t* numbers, Parts& parts) noexcept {
  for (std::size_t i = 0; i < chunk; ++i) {
    const std::uint32_t x = numbers[i];
    parts.exponents[i] = static_cast<std::uint8_t>(x >> 23);
    parts.upper[i] = static_cast<std::uint8_t>((x >> 24 & 0x80) | (x >> 16 & 0x7f));
    parts.lower[i] = static_cast<std::uint16_t>(x);
  }
}
void split(const std::uint16_t* numbers, Parts& parts) noexcept {
  for (std::size_t i = 0; i < chunk; ++i) {
    const std::uint16_t x = numbers[i];
    parts.exponents[i] = static_cast<std::uint8_t>(x >> 7);
    parts.upper[i] = static_cast<std::uint8_t>((x >> 8 & 0x80) | (x & 0x7f));
  }
}

void join(const Parts& parts, std::uint32_t* numbers) noexcept {
  for (std::size_t i = 0; i < chunk; ++i) {
    const std::uint32_t upper = parts.upper[i];
    numbers[i] = (upper & 0x80) << 24 | std::uint32_t{parts.exponents[i]} << 23 | (upper & 0x7f) << 16 | parts.lower[i];
  }
}
void join(const Parts& parts, std::uint16_t* numbers) noexcept {
  for (std::size_t i = 0; i < chunk; ++i) {
    const unsigned upper = parts.upper[i];
    numbers[i] = static_cast<std::uint16_t>((upper & 0x80) << 8 | unsigned{parts.exponents[i]} << 7 | (upper & 0x7f));
  }
}

std::size_t plane_bytes(std::size_t numbers) noexcept { return (numbers + 7) / 8; }

// How the exponents of a chunk are sent: codes of `width` bits below the largest exponent, others in full.
struct Choice {
  unsigned width = 0;
  std::size_t others = 0;
};

// How many numbers of a chunk are at least `limit`.
std::size_t count_from(const Octets& numbers, std::uint8_t limit) noexcept {
  // Counts in bytes, which the compiler does for many numbers at once; each of the 32 sums has 8 terms.
  std::array<std::uint8_t, 32> counts{};
  for (std::size_t i = 0; i < chunk; i += counts.size()) {
    for (std::size_t j = 0; j < counts.size(); ++j) {
      counts[j] = static_cast<std::uint8_t>(counts[j] + (numbers[i + j] >= limit ? 1 : 0));
    }
  }
  std::size_t sum = 0;
  for (const std::uint8_t one : counts) sum += one;
  return sum;
}

// `below` holds the distances from the largest exponent.
Choice cheapest(const Octets& below, std::size_t numbers) noexcept {
  if (count_from(below, 1) == 0) return {0, 0};
  Choice best{whole_exponents, 0};
  std::size_t cost = numbers;
  for (unsigned width = 1; width < whole_exponents && width * plane_bytes(numbers) < cost; ++width) {
    const std::size_t others = count_from(below, static_cast<std::uint8_t>((1U << width) - 1));
    const std::size_t bytes = width * plane_bytes(numbers) + others;
    if (bytes >= cost) continue;
    cost = bytes;
    best = {width, others};
  }
  return best;
}

constexpr std::uint64_t ones = 0x0101010101010101;

// Bit `plane` of each code: that of code i is bit i.
void put_plane(const Octets& codes, unsigned plane, std::size_t numbers, std::byte* wire) noexcept {
  for (std::size_t i = 0; i < plane_bytes(numbers); ++i) {
    std::uint64_t eight;
    std::memcpy(&eight, codes.data() + 8 * i, sizeof eight);
    // The product moves bit 0 of byte k to bit 56 + k; no two terms meet.
    wire[i] = static_cast<std::byte>(((eight >> plane & ones) * 0x0102040810204080) >> 56);
  }
}
void take_plane(const std::byte* wire, unsigned plane, std::size_t numbers, Octets& codes) noexcept {
  for (std::size_t i = 0; i < plane_bytes(numbers); ++i) {
    const std::uint64_t chosen = std::to_integer<std::uint64_t>(wire[i]) * ones & 0x8040201008040201;
    const std::uint64_t bits = (chosen + 0x7f * ones) >> 7 & ones;
    std::uint64_t eight;
    std::memcpy(&eight, codes.data() + 8 * i, sizeof eight);
    eight |= bits << plane;
    std::memcpy(codes.data() + 8 * i, &eight, sizeof eight);
  }
}

// Writes the exponents of a chunk, and returns the end.
std::byte* put_exponents(const Octets& below, const Parts& parts, const Choice& choice, std::size_t numbers,
                         std::byte* wire) noexcept {
  if (choice.width == whole_exponents) {
    std::memcpy(wire, parts.exponents.data(), numbers);
    return wire + numbers;
  }
  const auto last = static_cast<std::uint8_t>((1U << choice.width) - 1);
  alignas(64) Octets codes;
  for (std::size_t i = 0; i < chunk; ++i) codes[i] = std::min(below[i], last);
  for (unsigned plane = 0; plane < choice.width; ++plane, wire += plane_bytes(numbers)) {
    put_plane(codes, plane, numbers, wire);
  }
  for (std::size_t i = 0, left = choice.others; left > 0; ++i) {
    if (codes[i] != last) continue;
    *wire++ = static_cast<std::byte>(parts.exponents[i]);
    --left;
  }
  return wire;
}

// Encodes `numbers` numbers, at most a chunk, and returns the end.
template <class Word>
std::byte* encode_chunk(const std::byte* source, std::size_t numbers, std::byte* wire) noexcept {
  alignas(64) std::array<Word, chunk> words;
  std::memcpy(words.data(), source, numbers * sizeof(Word));
  // The rest is filled with a number of the chunk that has the largest exponent, which no width has to reach for.
  const auto exponent = [](Word word) { return static_cast<Word>(word << 1U); };
  const Word top = numbers == chunk ? Word{0}
                                    : *std::max_element(words.begin(), words.begin() + static_cast<long>(numbers),
                                                        [&](Word a, Word b) { return exponent(a) < exponent(b); });
  std::fill(words.begin() + static_cast<long>(numbers), words.end(), top);
  Word any = 0;
  for (const Word word : words) any |= word;
  if (any == 0) {
    wire[0] = static_cast<std::byte>(all_zero), wire[1] = wire[2] = std::byte{0};
    return wire + header_bytes;
  }
  Parts parts;
  split(words.data(), parts);
  const bool lower = sizeof(Word) == 4 && (any & 0xffff) != 0;
  std::uint8_t largest = 0;
  for (const std::uint8_t one : parts.exponents) largest = std::max(largest, one);
  alignas(64) Octets below;
  for (std::size_t i = 0; i < chunk; ++i) below[i] = static_cast<std::uint8_t>(largest - parts.exponents[i]);
  const Choice choice = cheapest(below, numbers);
  wire[0] = static_cast<std::byte>(choice.width | (sizeof(Word) == 4 && !lower ? no_lower_halves : 0U));
  wire[1] = static_cast<std::byte>(choice.width == whole_exponents ? 0 : largest);
  wire[2] = static_cast<std::byte>(choice.others);
  wire = put_exponents(below, parts, choice, numbers, wire + header_bytes);
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

void take_exponents(Reader& reader, unsigned width, std::uint8_t largest, std::size_t others, std::size_t numbers,
                    Octets& exponents) {
  if (width == whole_exponents) {
    std::memcpy(exponents.data(), reader.take(numbers), numbers);
    return;
  }
  alignas(64) Octets codes{};
  for (unsigned plane = 0; plane < width; ++plane) {
    take_plane(reader.take(plane_bytes(numbers)), plane, numbers, codes);
  }
  for (std::size_t i = 0; i < chunk; ++i) exponents[i] = static_cast<std::uint8_t>(largest - codes[i]);
  const std::byte* const in_full = reader.take(others);
  const auto last = static_cast<std::uint8_t>((1U << width) - 1);
  if (width == 0 || others == 0) return;
  std::size_t used = 0;
  for (std::size_t i = 0; i < numbers; ++i) {
    if (codes[i] != last) continue;
    if (used == others) throw_damaged("more exponents in full than its header says");
    exponents[i] = std::to_integer<std::uint8_t>(in_full[used++]);
  }
  if (used != others) throw_damaged("fewer exponents in full than its header says");
}

template <class Word>
void decode_chunk(Reader& reader, std::size_t numbers, std::byte* target) {
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
  Parts parts;
  if (numbers < chunk) parts = {};  // all of it is joined below
  take_exponents(reader, width, std::to_integer<std::uint8_t>(header[1]), others, numbers, parts.exponents);
  std::memcpy(parts.upper.data(), reader.take(numbers), numbers);
  if constexpr (sizeof(Word) == 4) {
    if ((flags & no_lower_halves) != 0) {
      parts.lower.fill(0);
    } else {
      std::memcpy(parts.lower.data(), reader.take(numbers * 2), numbers * 2);
    }
  }
  alignas(64) std::array<Word, chunk> words;
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
  std::byte* end = wire.data();
  for (std::size_t i = 0; i < elements; i += chunk) {
    end = encode(source.data() + i * each, std::min(chunk, elements - i), end);
  }
  return end - wire.data();
}

void lossless_decode(ElementType type, std::span<const std::byte> wire, std::span<std::byte> target) {
  const std::size_t elements = elements_in(type, target.size());
  const auto decode = type == ElementType::float32 ? decode_chunk<std::uint32_t> : decode_chunk<std::uint16_t>;
  const auto each = static_cast<std::size_t>(number_bytes(type));
  Reader reader(wire);
  for (std::size_t i = 0; i < elements; i += chunk) {
    decode(reader, std::min(chunk, elements - i), target.data() + i * each);
  }
  if (reader.left() != 0) {
    throw_damaged(base::counted(static_cast<std::int64_t>(reader.left()), "byte") + " after the last number");
  }
}

}  // namespace onehop
