// The codecs of cards against those of processors, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "onehop/codec.h"
#include "onehop/error.h"
#include "src/device/codec_tiles.h"
#include "src/device/kernels.h"

namespace onehop::device {
namespace {

constexpr Codec codecs[] = {Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3};
constexpr ElementType types[] = {ElementType::float32, ElementType::float16, ElementType::bfloat16};

// Blocks of one magnitude, of random bits, with ties, zeros, infinities and NaN.
std::vector<float> all_kinds(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; i += 32) {
    const unsigned kind = random() % 8;
    const float magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x7f000000));
    for (std::size_t j = i; j < std::min(i + 32, n); ++j) {
      const auto bits = static_cast<std::uint32_t>(random());
      const auto unit = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F;
      const std::uint32_t marks[] = {0x7f800000, 0xff800000, 0x7fc00001, 0xffc12345,
                                     0x7f800001, 1,          0x80000000, 0x7f000000};
      x[j] = kind == 0   ? 0
             : kind == 1 ? std::bit_cast<float>(bits)
             : kind == 2 ? std::bit_cast<float>(bits & 0x807fffff)
             : kind == 3 ? static_cast<float>(static_cast<int>(unit * 254)) * magnitude / 2
                         : unit * magnitude;
      if (kind > 5 && bits % 8 == 0) x[j] = std::bit_cast<float>(marks[bits / 8 % 8]);
    }
  }
  return x;
}

// The bytes of codes and headers of a block: on the wire of processors the header comes first.
std::vector<std::byte> in_tiles(Codec codec, const std::vector<std::byte>& wire) {
  const auto block = static_cast<std::size_t>(encoded_bytes(codec, ElementType::float32, block_numbers));
  const std::size_t header = block_elements(codec) == 1 ? 0 : 2;
  const std::size_t blocks = wire.size() / block;
  std::vector<std::byte> tiles((blocks + tile_blocks - 1) / tile_blocks * tile_blocks * block);
  for (std::size_t b = 0; b < blocks; ++b) {
    std::byte* const tile = tiles.data() + b / tile_blocks * tile_blocks * block;
    const std::byte* const from = wire.data() + b * block;
    std::memcpy(tile + b % tile_blocks * (block - header), from + header, block - header);
    std::memcpy(tile + tile_blocks * (block - header) + b % tile_blocks * header, from, header);
  }
  return tiles;
}

void run(const std::string& name, const Shape& shape, const CodecArguments& arguments) {
  const Kernel& kernel = find_kernel("onehop_" + name);
  ASSERT_EQ(kernel.argument_bytes, sizeof arguments);
  std::vector<Wide> shared(shape.shared_bytes / sizeof(Wide) + 1);
  for (std::uint32_t group = 0; group < shape.groups; ++group) {
    kernel.run_group(shape, group, &arguments, reinterpret_cast<std::byte*>(shared.data()));
  }
}

// Encodes and decodes `count` numbers that begin `offset` numbers behind an address aligned to 16 bytes.
void compare(Codec codec, ElementType type, const std::vector<float>& x, std::size_t offset, const Shape& shape) {
  SCOPED_TRACE(std::string(to_string(codec)) + " " + std::string(to_string(type)) + " " + std::to_string(x.size()));
  const std::size_t size = type == ElementType::float32 ? 4 : 2;
  const auto device_type = type == ElementType::float32   ? NumberType::float32
                           : type == ElementType::float16 ? NumberType::float16
                                                          : NumberType::bfloat16;
  std::vector<Wide> memory((x.size() + offset) * size / sizeof(Wide) + 1);
  std::vector<Wide> target_memory(memory.size());
  std::byte* const source = reinterpret_cast<std::byte*>(memory.data()) + offset * size;
  std::byte* const target = reinterpret_cast<std::byte*>(target_memory.data()) + offset * size;
  if (type == ElementType::float32) {
    std::ranges::copy(std::as_bytes(std::span(x)), source);
  } else {
    encode(type == ElementType::float16 ? Codec::fp16 : Codec::bf16, ElementType::float32, std::as_bytes(std::span(x)),
           {source, x.size() * size});
  }
  const auto count = static_cast<std::int64_t>(x.size());
  // Whole blocks, as in tiles: the padding is zeros.
  std::vector<float> padded((x.size() + block_numbers - 1) / block_numbers * block_numbers - x.size());
  std::vector<std::byte> whole(source, source + x.size() * size);
  whole.resize(whole.size() + padded.size() * size);
  std::vector<std::byte> wire(
      static_cast<std::size_t>(encoded_bytes(codec, type, count + static_cast<std::int64_t>(padded.size()))));
  encode(codec, type, whole, wire);
  std::vector<std::byte> expected = in_tiles(codec, wire);
  const auto blocks = wire.size() / static_cast<std::size_t>(encoded_bytes(codec, ElementType::float32, block_numbers));

  std::vector<Wide> tiles(expected.size() / sizeof(Wide));
  auto* const bytes = reinterpret_cast<std::byte*>(tiles.data());
  const CodecArguments arguments{source, bytes, x.size(), device_type};
  run("encode_" + std::string(to_string(codec)), shape, arguments);
  // Blocks beyond the last are those of zeros; the comparison is of the others, and of their headers.
  if (blocks % tile_blocks == 0) {
    EXPECT_TRUE(std::ranges::equal(std::span(bytes, expected.size()), expected));
  }
  std::vector<std::byte> right(x.size() * size);
  wire.resize(static_cast<std::size_t>(encoded_bytes(codec, type, count)));
  decode(codec, type, wire, right);
  CodecArguments back = arguments;
  back.numbers = target;
  run("decode_" + std::string(to_string(codec)), shape, back);
  EXPECT_TRUE(std::ranges::equal(std::span(target, right.size()), right));
  const std::byte untouched{};
  EXPECT_TRUE(offset == 0 || target[-1] == untouched);
}

#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t many = 1 << 16;
#elif defined(__SANITIZE_THREAD__)
constexpr std::size_t many = 1 << 14;
#else
constexpr std::size_t many = 1 << 22;
#endif

TEST(DeviceCodecs, EqualThoseOfProcessors) {
  const Shape shape{3, 1, codec_shared_bytes};
  for (const ElementType type : types) {
    const std::vector<float> x = all_kinds(type == ElementType::float32 ? many : many / 8, 1);
    for (const Codec codec : codecs) compare(codec, type, x, 0, shape);
  }
}

TEST(DeviceCodecs, TakeEveryLengthAlignmentAndNumberOfThreads) {
  for (const ElementType type : types) {
    for (const std::size_t count : {0U, 1U, 7U, 31U, 33U, 2047U, 2048U, 2049U, 5 * 2048U + 77}) {
      const std::vector<float> x = all_kinds(count, static_cast<unsigned>(count));
      for (const Codec codec : codecs)
        compare(codec, type, x, count % 5, {1 + static_cast<std::uint32_t>(count % 3), 96, codec_shared_bytes});
    }
  }
}

// A phase must not depend on the order of its threads.
TEST(DeviceCodecs, DoNotDependOnTheOrderOfThreads) {
  std::vector<float> x = all_kinds(tile_numbers * 3, 5);
  const Shape shape{1, 128, codec_shared_bytes};
  std::vector<Wide> shared(shape.shared_bytes / sizeof(Wide) + 1);
  std::vector<Wide> wires[2];
  std::vector<float> back[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    wires[i].resize(3 * tile_bytes<Q6> / sizeof(Wide));
    back[i].resize(x.size());
    LoopTeam encoders(shape, 0, shared.data(), 11 * i);
    encode<Q6>(encoders, {x.data(), wires[i].data(), x.size(), NumberType::float32});
    LoopTeam decoders(shape, 0, shared.data(), 5 * i);
    decode<Q6>(decoders, {back[i].data(), wires[i].data(), x.size(), NumberType::float32});
  }
  EXPECT_EQ(std::memcmp(wires[0].data(), wires[1].data(), wires[0].size() * sizeof(Wide)), 0);
  EXPECT_EQ(std::memcmp(back[0].data(), back[1].data(), x.size() * sizeof(float)), 0);
}

TEST(DeviceKernels, HaveNamesAndAnUnknownOneIsRefused) {
  EXPECT_GE(kernels().size(), 22U);
  for (const Kernel& kernel : kernels()) EXPECT_EQ(&find_kernel(kernel.name), &kernel);
  EXPECT_THROW((void)find_kernel("encode_q8"), BadInput);
}

}  // namespace
}  // namespace onehop::device
