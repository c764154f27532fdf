// The processor as a device; names of devices.
#include "src/device/device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "onehop/codec.h"
#include "onehop/error.h"
#include "src/device/all_kernels.h"
#include "tests/support/ranks.h"

namespace onehop::device {
namespace {

template <class Number>
Number* numbers_in(const Memory& memory) {
  return reinterpret_cast<Number*>(memory.data());
}

TEST(Device, HasANameOrIsRefused) {
  EXPECT_EQ(Device::named("processor"), Device::processor());
  EXPECT_EQ(Device::processor()->text(), "processor");
  for (const char* const wrong : {"", "cpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "processor:0", "rocm"})
    EXPECT_THROW(static_cast<void>(Device::named(wrong)), BadInput) << wrong;
}

TEST(Device, ProcessorCopiesAndRunsKernels) {
  const auto device = Device::processor();
  const Stream stream = device->make_stream();
  constexpr std::int64_t count = tile_numbers;
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 97) - 40.5F;
  const Memory plain = device->allocate(4 * count);
  const Memory wire = device->allocate(tile_bytes<Q8>);
  device->copy_in(stream, plain.data(), numbers.data(), plain.bytes());
  const Shape shape{.groups = 2, .threads = 64, .shared_bytes = codec_shared_bytes};
  const CodecArguments arguments{plain.data(), wire.data(), count, NumberType::float32};
  device->launch(stream, "onehop_encode_q8", shape, arguments);
  device->fill(stream, plain.data(), std::byte{0xff}, plain.bytes());
  device->launch(stream, "onehop_decode_q8", shape, arguments);
  std::vector<float> back(count);
  device->copy_out(stream, back.data(), plain.data(), plain.bytes());
  device->synchronize(stream);
  std::vector<std::byte> encoded(static_cast<std::size_t>(encoded_bytes(Codec::q8, ElementType::float32, count)));
  std::vector<float> expected(count);
  encode(Codec::q8, ElementType::float32, std::as_bytes(std::span(numbers)), encoded);
  decode(Codec::q8, ElementType::float32, encoded, std::as_writable_bytes(std::span(expected)));
  EXPECT_EQ(back, expected);
}

TEST(Device, RefusesWrongLaunches) {
  const auto device = Device::processor();
  EXPECT_THROW(device->launch({}, "onehop_encode_q9", {}, CodecArguments{}), BadInput);
  EXPECT_THROW(device->launch({}, "onehop_encode_q8", {}, 7), BadInput);
  EXPECT_THROW(static_cast<void>(device->allocate(-1)), BadInput);
  EXPECT_THROW(static_cast<void>(device->allocate(std::numeric_limits<std::int64_t>::max() / 2)), Error);
}

TEST(Device, ProcessesShareMemory) {
  testing::on_ranks(2, [](const Group& group) {
    const auto device = Device::processor();
    const Memory mine = device->allocate(8);
    *numbers_in<std::int64_t>(mine) = 7 + group.rank();
    const MemoryHandle handle = device->handle_of(mine);
    const auto handles = group.allgather(handle.bytes);
    MemoryHandle other;
    const auto found = handles[static_cast<std::size_t>(1 - group.rank())];
    std::memcpy(other.bytes.data(), found.data(), other.bytes.size());
    EXPECT_EQ(*numbers_in<std::int64_t>(device->map(other, 8)), 8 - group.rank());
    group.barrier();
  });
}

}  // namespace
}  // namespace onehop::device
