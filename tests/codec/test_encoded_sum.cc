// Sums of encoded numbers in one pass, compared with encoding, decoding and adding one after the other.
#include "src/codec/encoded_sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "src/codec/codec_loops.h"
#include "src/codec/codec_run.h"

namespace onehop {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

constexpr Codec lossy[] = {Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3};

// Ordinary blocks, and some with numbers that are not finite or huge.
Floats numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats x(n);
  for (float& one : x) one = normal(random);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float odd[] = {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 0x1.8p127F, 0x1p-140F, -0.0F};
  for (std::size_t i = seed; i < n; i += 97) x[i] = odd[i % 6];
  return x;
}

Bytes encoded(Codec codec, const Floats& x) {
  Bytes wire(static_cast<std::size_t>(encoded_bytes(codec, ElementType::float32, static_cast<std::int64_t>(x.size()))));
  encode(codec, ElementType::float32, std::as_bytes(std::span(x)), wire);
  return wire;
}

Floats decoded(Codec codec, const Bytes& wire, std::size_t n) {
  Floats x(n);
  decode(codec, ElementType::float32, wire, std::as_writable_bytes(std::span(x)));
  return x;
}

std::vector<std::uint32_t> bits_of(const Floats& x) {
  std::vector<std::uint32_t> bits;
  for (const float one : x) bits.push_back(std::isnan(one) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(one));
  return bits;
}

// The reference: step by step with the portable loops, one number at a time.
Bytes expected_wire(Codec codec, const std::vector<Floats>& ranks, bool mean) {
  Floats total = decoded(codec, encoded(codec, ranks[0]), ranks[0].size());
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const Floats other = decoded(codec, encoded(codec, ranks[r]), total.size());
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += other[i];
  }
  if (mean) {
    for (float& one : total) one /= static_cast<float>(ranks.size());
  }
  return encoded(codec, total);
}

class EncodedSums : public ::testing::Test {
 protected:
  void TearDown() override { detail::use_codecs(nullptr); }
};

TEST_F(EncodedSums, AreThatOfTheSteps) {
  for (const Codec codec : lossy) {
    for (const std::size_t n : {1U, 31U, 32U, 33U, 1024U, 1500U, 3000U}) {
      for (const int ranks : {1, 2, 3, 5}) {
        std::vector<Floats> sources;
        std::vector<Bytes> wires;
        for (int r = 0; r < ranks; ++r) sources.push_back(numbers(n, static_cast<unsigned>(r) + 3));
        detail::use_codecs(&detail::portable_codecs());
        for (const Floats& source : sources) wires.push_back(encoded(codec, source));
        const int plain = static_cast<int>(n) % (ranks + 1) - 1;  // none, or one of them
        const bool mean = n % 2 == 0;
        const Bytes wanted = expected_wire(codec, sources, mean);
        const Floats back = decoded(codec, wanted, n);
        for (const detail::CodecSet* set : detail::available_codecs()) {
          detail::use_codecs(set);
          std::vector<const std::byte*> from;
          for (const Bytes& wire : wires) from.push_back(wire.data());
          Bytes memory(n * 4 + 1);  // at an odd address, and also the memory of the result
          if (plain >= 0) {
            std::memcpy(memory.data() + 1, sources[static_cast<std::size_t>(plain)].data(), n * 4);
            from[static_cast<std::size_t>(plain)] = memory.data() + 1;
          }
          Bytes wire(wanted.size() + 1, std::byte{0xa5});
          add_encoded({codec, from, plain, mean}, static_cast<std::int64_t>(n), wire.data(), memory.data() + 1);
          EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), wire.begin()))
              << set->name << ' ' << to_string(codec) << ' ' << n << " on " << ranks << ", plain " << plain;
          EXPECT_EQ(wire.back(), std::byte{0xa5});
          Floats result(n);
          std::memcpy(result.data(), memory.data() + 1, n * 4);
          EXPECT_EQ(bits_of(result), bits_of(back)) << set->name << ' ' << to_string(codec);
        }
      }
    }
  }
}

TEST_F(EncodedSums, NeedNoWire) {
  const Floats x = numbers(100, 1);
  for (const Codec codec : lossy) {
    const Bytes wire = encoded(codec, x);
    const std::byte* const from[] = {wire.data()};
    Floats result(100);
    add_encoded({codec, from}, 100, nullptr, reinterpret_cast<std::byte*>(result.data()));
    const Floats once = decoded(codec, wire, 100);
    EXPECT_EQ(bits_of(result), bits_of(decoded(codec, encoded(codec, once), 100))) << to_string(codec);
  }
}

}  // namespace
}  // namespace onehop
