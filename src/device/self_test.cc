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
#include "src/device/kernel_trials.h"

namespace onehop::device {
namespace {

constexpr Shape shape{.groups = 32, .threads = 256, .shared_bytes = codec_shared_bytes};
constexpr std::array codecs{Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3};

// Of whole tiles.
std::size_t wire_bytes(Codec codec, std::int64_t count) {
  const std::int64_t tiles = (count + tile_numbers - 1) / tile_numbers;
  return static_cast<std::size_t>(tiles * tile_blocks * encoded_bytes(codec, ElementType::float32, block_numbers));
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

// The first byte that differs, in words; empty if none does.
std::string difference(std::span<const std::byte> found, std::span<const std::byte> expected) {
  const auto [at, other] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  if (at == found.end()) return {};
  return "byte " + std::to_string(at - found.begin()) + " is " + std::to_string(std::to_integer<int>(*at)) +
         ", expected " + std::to_string(std::to_integer<int>(*other));
}

struct Outcome {
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> after;  // the results after every step
  std::string error;                          // of the device, which then made no other step
};

Outcome run(Device& device, const std::function<void(Trial&)>& build, std::size_t room) {
  Outcome found;
  try {
    const Memory memory = device.allocate(static_cast<std::int64_t>(room));
    const Stream stream = device.make_stream();
    Trial trial;
    trial.memory = memory.data();
    build(trial);
    for (const Trial::Step& step : trial.steps) found.names.push_back(step.name);
    device.copy_in(stream, memory.data(), trial.bytes.data(), std::ssize(trial.bytes));
    for (const Trial::Step& step : trial.steps) {
      device.launch(stream, step.kernel, step.shape, step.arguments.data(), step.arguments.size());
      std::vector<std::byte> results(trial.compared);
      device.copy_out(stream, results.data(), memory.data(), std::ssize(results));
      device.synchronize(stream);
      found.after.push_back(std::move(results));
    }
  } catch (const Error& error) {
    found.error = error.what();
  }
  return found;
}

// Compares the results after every step with the processor's, and returns the last ones.
std::vector<std::byte> compare(Device& device, const std::function<void(Trial&)>& build, std::size_t room,
                               std::vector<KernelCheck>& checks) {
  const Outcome found = run(device, build, room);
  const Outcome right = run(*Device::processor(), build, room);
  for (std::size_t s = 0; s < right.after.size(); ++s) {
    const bool failed = s == found.after.size();
    checks.push_back({right.names[s], "the kernels on the processor",
                      failed ? found.error : difference(found.after[s], right.after[s])});
    if (failed) return {};
  }
  return found.after.back();
}

}  // namespace

std::vector<KernelCheck> check_kernels(Device& device, bool quick) {
  std::vector<KernelCheck> checks;
  const std::vector<float> values = numbers(quick ? 3 * tile_numbers + 17 : (std::int64_t{4} << 20U) + 17);
  const auto source = std::as_bytes(std::span(values));
  constexpr std::size_t least_room = std::size_t{1} << 18U;
  for (const Codec codec : codecs) {
    const std::string name(to_string(codec));
    const auto build = [&](Trial& trial) {
      auto* const wire = trial.put(std::vector<std::byte>(wire_bytes(codec, std::ssize(values))));
      float* const back = trial.put(std::vector<float>(values.size(), -1));
      trial.end_of_results();
      CodecArguments arguments{trial.put(values), wire, values.size(), NumberType::float32};
      trial.launch("encode_" + name, shape, arguments);
      arguments.numbers = back;
      trial.launch("decode_" + name, shape, arguments);
    };
    const std::vector<std::byte> found = compare(device, build, least_room + 4 * source.size(), checks);
    if (found.empty()) continue;
    std::vector<std::byte> wire(
        static_cast<std::size_t>(encoded_bytes(codec, ElementType::float32, std::ssize(values))));
    std::vector<std::byte> expected(source.size());
    encode(codec, ElementType::float32, source, wire);
    decode(codec, ElementType::float32, wire, expected);
    checks.push_back({checks.back().name, "the codecs of the processor",
                      difference(std::span(found).last(expected.size()), expected)});
  }
  for (const auto& build : kernel_trials()) compare(device, build, least_room, checks);
  return checks;
}

std::vector<Rate> measure_kernels(Device& device, std::int64_t bytes) {
  constexpr int times = 10;
  const Memory plain = device.allocate(bytes);
  const Memory other = device.allocate(std::max(bytes, static_cast<std::int64_t>(wire_bytes(Codec::fp16, bytes / 4))));
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
