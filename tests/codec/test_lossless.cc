#include "onehop/lossless.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "onehop/error.h"
#include "src/base/cpu.h"
#include "tests/support/two_to.h"

namespace onehop {
namespace {

using Bytes = std::vector<std::byte>;
using Words = std::vector<std::uint32_t>;

Bytes encoded(ElementType type, const Bytes& source) {
  const std::int64_t elements = static_cast<std::int64_t>(source.size()) / bytes_of(type);
  Bytes wire(static_cast<std::size_t>(lossless_most_bytes(type, elements)) + 1, std::byte{0xa5});
  const std::int64_t used = lossless_encode(type, source, std::span(wire).first(wire.size() - 1));
  EXPECT_EQ(wire.back(), std::byte{0xa5});
  wire.resize(static_cast<std::size_t>(used));
  return wire;
}

// The upper halves for bfloat16, whole numbers for float32.
Bytes bytes_of_words(ElementType type, const Words& words) {
  const auto each = static_cast<std::size_t>(bytes_of(type));
  Bytes bytes(words.size() * each);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t word = each == 4 ? words[i] : words[i] >> 16;
    std::memcpy(bytes.data() + i * each, &word, each);
  }
  return bytes;
}

void expect_the_same_back(ElementType type, const Words& words) {
  const Bytes source = bytes_of_words(type, words);
  const Bytes wire = encoded(type, source);
  Bytes back(source.size() + 1, std::byte{0x5a});
  lossless_decode(type, wire, std::span(back).first(source.size()));
  EXPECT_EQ(back.back(), std::byte{0x5a});
  back.pop_back();
  EXPECT_EQ(back, source) << to_string(type) << ' ' << words.size();
}

Words normal(std::size_t n, unsigned seed, float scale = 1.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> number;
  Words words(n);
  for (auto& word : words) word = std::bit_cast<std::uint32_t>(number(random) * scale);
  return words;
}

// Blocks of exponents that differ by at most a random range, with others among them, zeros, and random bits.
Words all_kinds(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  Words words(n);
  for (std::size_t i = 0; i < n; i += 256) {
    const unsigned base = random() % 256;
    const unsigned range = 1U << random() % 9;
    const unsigned kind = random() % 5;
    const unsigned others = random() % 64;
    for (std::size_t j = i; j < std::min(i + 256, n); ++j) {
      const unsigned exponent = random() % 64 < others ? random() % 256 : (base - random() % range) & 255;
      const auto bits = static_cast<std::uint32_t>(random());
      words[j] = (bits & 0x807fffff) | exponent << 23;
      if (kind == 0) words[j] &= 0xffff0000;
      if (kind == 1) words[j] = j % 3 == 0 ? words[j] : 0;
      if (kind == 2) words[j] = j % 256 == 7 ? words[j] : 0;
      if (kind == 3 && seed % 2 == 0) words[j] = 0;
    }
  }
  return words;
}

TEST(Lossless, EveryInstructionSetGivesTheSameBytes) {
  for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
    for (const std::size_t n : {1, 63, 255, 256, 257, 5000}) {
      const Bytes source = bytes_of_words(type, all_kinds(n, static_cast<unsigned>(n)));
      std::vector<Bytes> wires;
      for (const cpu::Level level : cpu::levels()) {
        cpu::use_level(cpu::to_string(level));
        wires.push_back(encoded(type, source));
        EXPECT_EQ(wires.back(), wires.front()) << cpu::to_string(level) << ' ' << n;
        Bytes back(source.size());
        lossless_decode(type, wires.front(), back);
        EXPECT_EQ(back, source) << cpu::to_string(level) << ' ' << n;
      }
    }
  }
  cpu::use_level("");
}

TEST(Lossless, EveryBitComesBack) {
  for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
    for (unsigned seed = 0; seed < 60; ++seed) expect_the_same_back(type, all_kinds(256 * 20 + seed % 3, seed));
    for (std::size_t n = 0; n < 600; ++n) expect_the_same_back(type, all_kinds(n, static_cast<unsigned>(n)));
    Words halves(0x10000);
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint32_t>(i << 16 | (i & 3));
    expect_the_same_back(type, halves);
    std::shuffle(halves.begin(), halves.end(), std::mt19937(1));
    expect_the_same_back(type, halves);
  }
}

// A chunk by hand: exponents 127, 126, 125 and one of 100 take two bits each, and the last one byte more.
TEST(Lossless, AChunkByHand) {
  const float x[] = {1.0F, -0.5F, 0.25F, 0x1.8p-27F, 1.5F, 0.5F, 1.0F, 1.0F, -1.0F};
  Bytes source(sizeof x);
  std::memcpy(source.data(), x, sizeof x);
  const unsigned expected[] = {0x12, 127,  1,           // two planes, no lower halves, one in full
                               0x2a, 0x00, 0x0c, 0x00,  // codes 0 1 2 3 0 1 0 0 0
                               100,                     // in full
                               0,    0x80, 0,    0x40, 0x40, 0, 0, 0, 0x80};  // signs and upper bits of the mantissas
  Bytes bytes;
  for (const unsigned one : expected) bytes.push_back(static_cast<std::byte>(one));
  EXPECT_EQ(encoded(ElementType::float32, source), bytes);
}

TEST(Lossless, LengthsOfWellKnownNumbers) {
  const auto length = [](ElementType type, const Words& words) {
    return encoded(type, bytes_of_words(type, words)).size();
  };
  constexpr std::size_t n = 256 * 400;
  // Normally distributed numbers: the exponents take 3 bits, and 2.4 % of them one byte more (|x| < 2^-6 of the
  // largest).
  const Words words = normal(n, 1, 3e-5F);
  EXPECT_NEAR(static_cast<double>(length(ElementType::bfloat16, words)) / (2 * n), 0.71, 0.01);
  EXPECT_NEAR(static_cast<double>(length(ElementType::float32, words)) / (4 * n), 0.855, 0.005);
  EXPECT_EQ(length(ElementType::float32, Words(n, 0)), 400 * 3);
  EXPECT_EQ(length(ElementType::float32, Words(n, 0x3f800000)), 400 * (3 + 256));  // equal exponents, no lower halves
  // Numbers of random bits are not compressible, and take 3 bytes per chunk more.
  std::mt19937 random(5);
  Words noise(n);
  for (auto& word : noise) word = static_cast<std::uint32_t>(random());
  EXPECT_LE(length(ElementType::float32, noise), 4 * n + 3 * 400);
  EXPECT_GE(length(ElementType::float32, noise), 4 * n);
}

TEST(Lossless, RefusesWhatItCannotTake) {
  Bytes memory(64);
  Bytes wire(1000);
  EXPECT_THROW((void)lossless_most_bytes(ElementType::float64, 1), BadInput);
  EXPECT_THROW((void)lossless_most_bytes(ElementType::float32, -1), BadInput);
  EXPECT_THROW((void)lossless_most_bytes(ElementType::float32, testing::two_to(62)), BadInput);
  EXPECT_THROW((void)lossless_encode(ElementType::float16, memory, wire), BadInput);
  EXPECT_THROW((void)lossless_encode(ElementType::float32, std::span(memory).first(62), wire), BadInput);
  EXPECT_THROW((void)lossless_encode(ElementType::float32, memory, std::span(wire).first(64)), BadInput);
  EXPECT_THROW(lossless_decode(ElementType::float16, wire, memory), BadInput);
}

// Damaged bytes give an error or other numbers, and never touch other memory (the sanitizers look).
TEST(Lossless, DamagedBytesAreNoDanger) {
  std::mt19937 random(9);
  for (unsigned seed = 0; seed < 40; ++seed) {
    const auto type = seed % 2 == 0 ? ElementType::float32 : ElementType::bfloat16;
    const Words words = all_kinds(300 + seed, seed);
    const Bytes source = bytes_of_words(type, words);
    const Bytes wire = encoded(type, source);
    Bytes target(source.size());
    for (std::size_t length = 0; length < wire.size(); length += 1 + random() % 40) {
      EXPECT_THROW(lossless_decode(type, std::span(wire).first(length), target), BadInput);
    }
    Bytes longer = wire;
    longer.push_back(std::byte{0});
    EXPECT_THROW(lossless_decode(type, longer, target), BadInput);
    for (int trial = 0; trial < 200; ++trial) {
      Bytes damaged = wire;
      damaged[random() % (trial % 2 == 0 ? 3 : damaged.size())] = static_cast<std::byte>(random());
      try {
        lossless_decode(type, damaged, target);
      } catch (const BadInput&) {
        continue;
      }
    }
  }
}

}  // namespace
}  // namespace onehop
