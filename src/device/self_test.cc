#include "src/device/self_test.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <span>

#include "onehop/codec.h"
#include "onehop/error.h"
#include "src/base/env.h"
#include "src/device/codec_tiles.h"

namespace onehop::device {
namespace {

constexpr Shape shape{.groups = 32, .threads = 256, .shared_bytes = codec_shared_bytes};
constexpr std::array codecs{Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3};

std::int64_t tile_bytes_of(Codec codec) {
  switch (codec) {
    case Codec::fp8:
      return tile_bytes<Fp8>;
    case Codec::q8:
      return tile_bytes<Q8>;
    case Codec::q6:
      return tile_bytes<Q6>;
    case Codec::q4:
      return tile_bytes<Q4>;
    case Codec::q3:
      return tile_bytes<Q3>;
    default:
      return tile_bytes<Fp16>;
  }
}

std::int64_t wire_bytes(Codec codec, std::int64_t count) {
  return (count + tile_numbers - 1) / tile_numbers * tile_bytes_of(codec);
}

// Blocks of ordinary numbers, of all bit patterns, and of zeros, infinities and subnormal numbers.
std::vector<float> numbers(std::int64_t count) {
  std::vector<float> found(static_cast<std::size_t>(count));
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator; the upper bits are used
    const auto bits = static_cast<std::uint32_t>(state >> 32U);
    const std::size_t kind = i / block_numbers % 8;
    if (kind < 5) found[i] = (static_cast<float>(bits >> 8U) - 0x1p23F) * 0x1p-20F;
    if (kind == 5) found[i] = float_of(bits);
    if (kind == 6) found[i] = float_of(bits & 0x807fffffU);  // subnormal
    if (kind == 7) found[i] = bits % 3 == 0 ? float_of(0x7f800000U | (bits & 0x80000000U)) : 0.0F;
  }
  return found;
}

struct Results {
  std::vector<std::byte> wire;
  std::vector<std::byte> back;
};

Results round_trip(Device& device, Codec codec, std::span<const float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Stream stream = device.make_stream();
  const Memory plain = device.allocate(4 * count);
  const Memory wire = device.allocate(wire_bytes(codec, count));
  Results found{std::vector<std::byte>(static_cast<std::size_t>(wire.bytes())),
                std::vector<std::byte>(static_cast<std::size_t>(plain.bytes()))};
  const CodecArguments arguments{plain.data(), wire.data(), static_cast<uint64_t>(count), NumberType::float32};
  device.copy_in(stream, plain.data(), values.data(), plain.bytes());
  device.fill(stream, wire.data(), std::byte{0}, wire.bytes());
  device.launch(stream, "onehop_encode_" + std::string(to_string(codec)), shape, arguments);
  device.copy_out(stream, found.wire.data(), wire.data(), wire.bytes());
  device.fill(stream, plain.data(), std::byte{0xff}, plain.bytes());
  device.launch(stream, "onehop_decode_" + std::string(to_string(codec)), shape, arguments);
  device.copy_out(stream, found.back.data(), plain.data(), plain.bytes());
  device.synchronize(stream);
  return found;
}

// The first byte that differs, in words; empty if none does.
std::string difference(std::span<const std::byte> found, std::span<const std::byte> expected, const char* what) {
  const auto [at, other] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  if (at == found.end()) return {};
  return "byte " + std::to_string(at - found.begin()) + " of the " + what + " is " +
         std::to_string(std::to_integer<int>(*at)) + ", expected " + std::to_string(std::to_integer<int>(*other));
}

}  // namespace

std::vector<KernelCheck> check_kernels(Device& device, bool quick) {
  std::vector<KernelCheck> checks;
  const std::vector<float> values = numbers(quick ? 3 * tile_numbers + 17 : (std::int64_t{4} << 20U) + 17);
  const auto source = std::as_bytes(std::span(values));
  for (const Codec codec : codecs) {
    const std::string name(to_string(codec));
    KernelCheck encoding{"onehop_encode_" + name, "the kernels on the processor", {}};
    KernelCheck decoding{"onehop_decode_" + name, "the codecs of the processor", {}};
    try {
      const Results found = round_trip(device, codec, values);
      encoding.error = difference(found.wire, round_trip(*Device::processor(), codec, values).wire, "code");
      std::vector<std::byte> wire(static_cast<std::size_t>(
          encoded_bytes(codec, ElementType::float32, static_cast<std::int64_t>(values.size()))));
      std::vector<std::byte> expected(source.size());
      encode(codec, ElementType::float32, source, wire);
      decode(codec, ElementType::float32, wire, expected);
      decoding.error = difference(found.back, expected, "numbers");
    } catch (const Error& error) {
      (encoding.error.empty() ? encoding : decoding).error = error.what();
    }
    checks.push_back(encoding);
    checks.push_back(decoding);
  }
  return checks;
}

std::vector<Rate> measure_kernels(Device& device, std::int64_t bytes) {
  constexpr int times = 10;
  const Memory plain = device.allocate(bytes);
  const Memory other = device.allocate(std::max(bytes, wire_bytes(Codec::fp16, bytes / 4)));
  const Stream stream = device.make_stream();
  const Shape full{std::max(1U, device.resident_groups("onehop_encode_q8", shape)), shape.threads, shape.shared_bytes};
  device.fill(stream, plain.data(), std::byte{0}, bytes);
  const auto rate = [&](const auto& work) {
    work();  // warms up
    const Event begin = device.record(stream);
    for (int i = 0; i < times; ++i) work();
    const Event end = device.record(stream);
    device.synchronize(stream);
    return static_cast<double>(bytes) * times / std::max(device.seconds_between(begin, end), 1e-9);
  };
  const double copy = rate([&] { device.copy(stream, other.data(), plain.data(), bytes); });
  std::vector<Rate> rates;
  for (const Codec codec : codecs) {
    for (const char* const way : {"encode_", "decode_"}) {
      const std::string name = way + std::string(to_string(codec));
      const CodecArguments arguments{plain.data(), other.data(), static_cast<uint64_t>(bytes / 4), NumberType::float32};
      rates.push_back({name, rate([&] { device.launch(stream, "onehop_" + name, full, arguments); }), copy});
    }
  }
  return rates;
}

void check_at_first_use(Device& device) {
  static std::mutex mutex;
  static std::map<const Device*, std::string> checked;  // devices that live as long as the process
  if (device.kind() == Kind::processor || env::choice("ONEHOP_DEVICE_CHECK") == "0") return;
  const std::lock_guard guard(mutex);
  auto found = checked.find(&device);
  if (found == checked.end()) {
    std::string error;
    for (const KernelCheck& check : check_kernels(device, true))
      if (error.empty() && !check.error.empty()) error = "the kernel " + check.name + ": " + check.error;
    found = checked.emplace(&device, error).first;
  }
  if (found->second.empty()) return;
  throw Error(device.text() + " computes other results than the processor in " + found->second +
              "; the device is not used; `python -m onehop.device.check` checks all kernels");
}

}  // namespace onehop::device
