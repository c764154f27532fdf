#include <algorithm>
#include <bit>
#include <cstring>

#include "src/codec/lossless_steps.h"

namespace onehop::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t numbers = LosslessChunk::numbers;
using Octets = LosslessChunk::Octets;

std::uint32_t split32(const std::byte* from, LosslessChunk& chunk) {
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < numbers; ++i) {
    std::uint32_t x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    any |= x;
    chunk.exponents[i] = static_cast<std::uint8_t>(x >> 23);
    chunk.upper[i] = static_cast<std::uint8_t>((x >> 24 & 0x80) | (x >> 16 & 0x7f));
    chunk.lower[i] = static_cast<std::uint16_t>(x);
  }
  return any;
}

std::uint32_t split16(const std::byte* from, LosslessChunk& chunk) {
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < numbers; ++i) {
    std::uint16_t x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    any |= x;
    chunk.exponents[i] = static_cast<std::uint8_t>(x >> 7);
    chunk.upper[i] = static_cast<std::uint8_t>((x >> 8 & 0x80) | (x & 0x7f));
  }
  return any;
}

void join32(const LosslessChunk& chunk, std::byte* to) {
  for (std::size_t i = 0; i < numbers; ++i) {
    const std::uint32_t upper = chunk.upper[i];
    const std::uint32_t x =
        (upper & 0x80) << 24 | std::uint32_t{chunk.exponents[i]} << 23 | (upper & 0x7f) << 16 | chunk.lower[i];
    std::memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

void join16(const LosslessChunk& chunk, std::byte* to) {
  for (std::size_t i = 0; i < numbers; ++i) {
    const unsigned upper = chunk.upper[i];
    const auto x = static_cast<std::uint16_t>((upper & 0x80) << 8 | unsigned{chunk.exponents[i]} << 7 | (upper & 0x7f));
    std::memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

// How many numbers are at least `limit`.
std::size_t count_from(const Octets& octets, std::uint8_t limit) {
  // Counts in bytes, which the compiler does for many numbers at once; each of the 32 sums has 8 terms.
  std::array<std::uint8_t, 32> counts{};
  for (std::size_t i = 0; i < numbers; i += counts.size()) {
    for (std::size_t j = 0; j < counts.size(); ++j) {
      counts[j] = static_cast<std::uint8_t>(counts[j] + (octets[i + j] >= limit ? 1 : 0));
    }
  }
  std::size_t sum = 0;
  for (const std::uint8_t one : counts) sum += one;
  return sum;
}

std::uint8_t distances(const Octets& exponents, Octets& below, LosslessChunk::Counts& counts) {
  std::uint8_t largest = 0;
  for (const std::uint8_t one : exponents) largest = std::max(largest, one);
  for (std::size_t i = 0; i < numbers; ++i) below[i] = static_cast<std::uint8_t>(largest - exponents[i]);
  for (unsigned width = 1; width < counts.size(); ++width) {
    counts[width] = count_from(below, static_cast<std::uint8_t>((1U << width) - 1));
  }
  return largest;
}

constexpr std::uint64_t ones = 0x0101010101010101;

// Bits 0 of eight bytes, that of byte k as bit k.
std::uint8_t lowest_bits(std::uint64_t eight) {
  // The product moves bit 0 of byte k to bit 56 + k; no two terms meet.
  return static_cast<std::uint8_t>(((eight & ones) * 0x0102040810204080) >> 56);
}

void put_planes(const Octets& below, unsigned width, std::byte* planes, LosslessChunk::Bits& in_full) {
  const auto last = static_cast<std::uint8_t>((1U << width) - 1);
  in_full = {};
  for (std::size_t i = 0; i < numbers / 8; ++i) {
    std::array<std::uint8_t, 8> codes{};
    for (std::size_t k = 0; k < 8; ++k) {
      codes[k] = std::min(below[8 * i + k], last);
      in_full[i / 8] |= std::uint64_t{codes[k] == last ? 1U : 0U} << (8 * (i % 8) + k);
    }
    std::uint64_t eight;
    std::memcpy(&eight, codes.data(), sizeof eight);
    for (unsigned plane = 0; plane < width; ++plane) {
      planes[plane * LosslessChunk::plane_bytes + i] = std::byte{lowest_bits(eight >> plane)};
    }
  }
}

void take_planes(const std::byte* planes, unsigned width, std::uint8_t largest, Octets& exponents,
                 LosslessChunk::Bits& in_full) {
  const auto last = static_cast<std::uint8_t>((1U << width) - 1);
  in_full = {};
  for (std::size_t i = 0; i < numbers / 8; ++i) {
    std::uint64_t eight = 0;
    for (unsigned plane = 0; plane < width; ++plane) {
      const auto byte = std::to_integer<std::uint64_t>(planes[plane * LosslessChunk::plane_bytes + i]);
      const std::uint64_t chosen = byte * ones & 0x8040201008040201;
      eight |= ((chosen + 0x7f * ones) >> 7 & ones) << plane;
    }
    std::array<std::uint8_t, 8> codes{};
    std::memcpy(codes.data(), &eight, sizeof eight);
    for (std::size_t k = 0; k < 8; ++k) {
      exponents[8 * i + k] = static_cast<std::uint8_t>(largest - codes[k]);
      in_full[i / 8] |= std::uint64_t{codes[k] == last ? 1U : 0U} << (8 * (i % 8) + k);
    }
  }
}

}  // namespace

const LosslessSteps& lossless_portable() noexcept {
  static constexpr LosslessSteps steps{split32, split16, join32, join16, distances, put_planes, take_planes};
  return steps;
}

}  // namespace onehop::detail
