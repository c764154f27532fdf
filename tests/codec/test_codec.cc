#include "onehop/codec.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "onehop/error.h"
#include "src/codec/codec_loops.h"
#include "src/codec/codec_run.h"
#include "tests/support/thrown.h"
#include "tests/support/two_to.h"

namespace onehop {
namespace {

using testing::two_to;

constexpr Codec lossy[] = {Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3};
constexpr Codec with_scale[] = {Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3};
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> encoded(Codec codec, const std::vector<float>& x) {
  std::vector<std::byte> wire(
      static_cast<std::size_t>(encoded_bytes(codec, ElementType::float32, static_cast<std::int64_t>(x.size()))));
  encode(codec, ElementType::float32, std::as_bytes(std::span(x)), wire);
  return wire;
}

std::vector<float> decoded(Codec codec, const std::vector<std::byte>& wire, std::size_t elements) {
  std::vector<float> y(elements, 123.0F);
  decode(codec, ElementType::float32, wire, std::as_writable_bytes(std::span(y)));
  return y;
}

// Numbers of all kinds: blocks of one magnitude, blocks of random bits, blocks with numbers that are not finite.
std::vector<float> all_kinds(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; i += 32) {
    const unsigned kind = random() % 6;
    const float magnitude = std::ldexp(1.0F, static_cast<int>(random() % 270) - 140);
    for (std::size_t j = i; j < std::min(i + 32, n); ++j) {
      const auto unit = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31F;
      const unsigned special = random() % 40;
      x[j] = kind < 3    ? unit * magnitude
             : kind == 3 ? std::round(unit * 254) * magnitude / 2  // ties
                         : std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (kind == 4 && special < 4) x[j] = std::array{infinity, -infinity, quiet_nan, -quiet_nan}[special];
      if (kind == 5 && !std::isfinite(x[j])) x[j] = 0;
    }
  }
  return x;
}

// Compares bit patterns, but treats all NaNs as equal, because a sum may choose their payload.
std::vector<std::uint32_t> bits_of(const std::vector<float>& x) {
  std::vector<std::uint32_t> bits;
  for (const float one : x) bits.push_back(std::isnan(one) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(one));
  return bits;
}

class UseCodecs {
 public:
  explicit UseCodecs(const detail::CodecSet& set) { detail::use_codecs(&set); }
  ~UseCodecs() { detail::use_codecs(nullptr); }
  UseCodecs(const UseCodecs&) = delete;
  UseCodecs& operator=(const UseCodecs&) = delete;
};

TEST(Codec, NamesGoBothWays) {
  EXPECT_EQ(to_string(Codec::raw), "raw");
  EXPECT_EQ(codec_from_string("raw"), Codec::raw);
  for (const Codec codec : lossy) EXPECT_EQ(codec_from_string(to_string(codec)), codec);
}

TEST(Codec, AnUnknownNameListsTheKnownOnes) {
  EXPECT_EQ(testing::thrown<BadInput>([] { (void)codec_from_string("zip"); }),
            "expected a codec (one of: raw, fp16, bf16, fp8, q8, q6, q4, q3), found 'zip'");
}

TEST(Codec, SizesOnTheWire) {
  EXPECT_EQ(encoded_bytes(Codec::raw, ElementType::bytes, 7), 7);
  EXPECT_EQ(encoded_bytes(Codec::raw, ElementType::float64, 7), 56);
  EXPECT_EQ(encoded_bytes(Codec::fp16, ElementType::float64, 7), 14);
  const auto sizes = [](std::int64_t elements) {
    std::vector<std::int64_t> bytes;
    for (const Codec codec : with_scale) bytes.push_back(encoded_bytes(codec, ElementType::float32, elements));
    return bytes;
  };
  EXPECT_EQ(sizes(0), (std::vector<std::int64_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(sizes(1), (std::vector<std::int64_t>{34, 34, 26, 18, 14}));
  EXPECT_EQ(sizes(32), (std::vector<std::int64_t>{34, 34, 26, 18, 14}));
  EXPECT_EQ(sizes(33), (std::vector<std::int64_t>{68, 68, 52, 36, 28}));
  EXPECT_THROW((void)encoded_bytes(Codec::raw, ElementType::float64, two_to(61)), BadInput);
  EXPECT_THROW((void)encoded_bytes(Codec::q8, ElementType::float32, -1), BadInput);
}

TEST(Codec, RefusesWhatItCannotTake) {
  EXPECT_FALSE(takes(Codec::q8, ElementType::int32));
  EXPECT_FALSE(takes(Codec::fp16, ElementType::bytes));
  EXPECT_TRUE(takes(Codec::raw, ElementType::bytes));
  std::vector<std::byte> memory(64);
  std::vector<std::byte> wire(34);
  EXPECT_THROW(encode(Codec::q8, ElementType::int32, memory, wire), BadInput);
  EXPECT_THROW(encode(Codec::q8, ElementType::float32, std::span(memory).first(62), wire), BadInput);
  EXPECT_THROW(encode(Codec::q6, ElementType::float32, memory, wire), BadInput);
  EXPECT_THROW(decode(Codec::q8, ElementType::float32, std::span(wire).first(33), memory), BadInput);
  EXPECT_THROW(decode_add(Codec::raw, ElementType::bytes, memory, memory), BadInput);
}

// A block by hand. The largest number is 7.0, so the scale is 1; others round to the nearest integer, ties to even.
TEST(Codec, ABlockOfFourBits) {
  std::vector<float> x(32, 0.0F);
  x[0] = 7.0F, x[1] = -7.0F, x[2] = 0.5F, x[3] = 1.5F, x[4] = -2.5F, x[16] = 3.0F, x[31] = -1.0F;
  std::vector<std::byte> expected(18, std::byte{0});
  const auto put = [&](std::size_t at, int value) { expected[at] = static_cast<std::byte>(value); };
  put(0, 0x80), put(1, 0x3f);  // 1.0 as bfloat16
  put(2, 0x37), put(3, 0x09), put(5, 0x02), put(6, 0x0e), put(17, 0xf0);
  EXPECT_EQ(encoded(Codec::q4, x), expected);
  x[2] = 0.0F, x[3] = 2.0F, x[4] = -2.0F;
  EXPECT_EQ(decoded(Codec::q4, expected, 32), x);
}

// All loops write and read the same bytes.
TEST(Codec, WideAndPortableLoopsAgree) {
  for (const Codec codec : lossy) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      const std::vector<float> x = all_kinds(32 * 97 + seed, seed);
      const std::vector<float> there = all_kinds(x.size(), seed + 100);
      std::vector<std::byte> expected_wire;
      std::vector<float> expected;
      std::vector<float> expected_sum = there;
      {
        const UseCodecs use(detail::portable_codecs());
        expected_wire = encoded(codec, x);
        expected = decoded(codec, expected_wire, x.size());
        decode_add(codec, ElementType::float32, expected_wire, std::as_writable_bytes(std::span(expected_sum)));
      }
      for (const detail::CodecSet* set : detail::available_codecs()) {
        const UseCodecs use(*set);
        EXPECT_EQ(encoded(codec, x), expected_wire) << set->name << ' ' << to_string(codec) << ' ' << seed;
        EXPECT_EQ(bits_of(decoded(codec, expected_wire, x.size())), bits_of(expected)) << set->name;
        std::vector<float> sum = there;
        decode_add(codec, ElementType::float32, expected_wire, std::as_writable_bytes(std::span(sum)));
        EXPECT_EQ(bits_of(sum), bits_of(expected_sum)) << set->name;
      }
    }
  }
}

TEST(Codec, TwoByteNumbersOfAllBits) {
  std::vector<float> x;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0fffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U}) {
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  for (const Codec codec : {Codec::fp16, Codec::bf16}) {
    const UseCodecs use(detail::portable_codecs());
    const std::vector<std::byte> expected = encoded(codec, x);
    const std::vector<float> back = decoded(codec, expected, x.size());
    for (const detail::CodecSet* set : detail::available_codecs()) {
      const UseCodecs other(*set);
      EXPECT_EQ(encoded(codec, x), expected) << set->name << ' ' << to_string(codec);
      EXPECT_EQ(bits_of(decoded(codec, expected, x.size())), bits_of(back)) << set->name;
    }
  }
}

// The encoding of a block depends only on its 32 numbers.
TEST(Codec, BlocksKnowNothingOfEachOther) {
  const std::vector<float> x = all_kinds(std::size_t{32} * 50, 7);
  for (const Codec codec : with_scale) {
    const std::vector<std::byte> whole = encoded(codec, x);
    const std::size_t bytes = whole.size() / 50;
    for (std::size_t b = 0; b < 50; ++b) {
      const auto first = static_cast<std::ptrdiff_t>(b * 32);
      const std::vector<float> one(x.begin() + first, x.begin() + first + 32);
      const std::vector<std::byte> wire = encoded(codec, one);
      EXPECT_TRUE(std::equal(wire.begin(), wire.end(), whole.begin() + static_cast<std::ptrdiff_t>(b * bytes)));
    }
  }
}

TEST(Codec, AnyLengthAndAlignment) {
  const std::vector<float> x = all_kinds(200, 3);
  for (const Codec codec : lossy) {
    for (std::size_t n = 0; n < 100; ++n) {
      const std::vector<float> some(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n));
      const std::vector<std::byte> wire = encoded(codec, some);
      std::vector<std::byte> source(n * 4 + 1);
      if (n > 0) std::memcpy(source.data() + 1, some.data(), n * 4);
      std::vector<std::byte> shifted(wire.size() + 3, std::byte{0xa5});
      encode(codec, ElementType::float32, std::span(source).subspan(1), std::span(shifted).subspan(1, wire.size()));
      EXPECT_TRUE(std::equal(wire.begin(), wire.end(), shifted.begin() + 1));
      EXPECT_EQ(shifted[0], std::byte{0xa5});
      EXPECT_EQ(shifted[wire.size() + 1], std::byte{0xa5});
      std::vector<std::byte> target(n * 4 + 9, std::byte{0xa5});
      decode(codec, ElementType::float32, std::span(shifted).subspan(1, wire.size()),
             std::span(target).subspan(1, n * 4));
      std::vector<float> back(n);
      if (n > 0) std::memcpy(back.data(), target.data() + 1, n * 4);
      EXPECT_EQ(bits_of(back), bits_of(decoded(codec, wire, n)));
      EXPECT_EQ(target[0], std::byte{0xa5});
      EXPECT_EQ(target[n * 4 + 1], std::byte{0xa5});
    }
  }
}

TEST(Codec, HalvesSurviveTheirOwnCodec) {
  std::vector<std::uint16_t> halves(0x10000);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (const auto& [codec, type] :
       {std::pair{Codec::fp16, ElementType::float16}, std::pair{Codec::bf16, ElementType::bfloat16}}) {
    std::vector<std::uint16_t> wire(halves.size());
    encode(codec, type, std::as_bytes(std::span(halves)), std::as_writable_bytes(std::span(wire)));
    EXPECT_EQ(wire, halves);
    // The sum with 0 is the number itself, through float32 and back; only -0 and NaNs change.
    std::vector<std::uint16_t> sum(halves.size(), 0);
    decode_add(codec, type, std::as_bytes(std::span(wire)), std::as_writable_bytes(std::span(sum)));
    const unsigned infinite = type == ElementType::float16 ? 0x7c00 : 0x7f80;
    for (std::size_t i = 1; i < halves.size(); ++i) {
      if ((i & 0x7fff) > infinite || i == 0x8000) continue;
      EXPECT_EQ(sum[i], halves[i]);
    }
  }
}

}  // namespace
}  // namespace onehop
