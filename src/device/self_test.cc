#include "src/device/self_test.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <span>

#include "onehop/codec.h"
#include "onehop/error.h"
#include "src/base/env.h"
#include "src/device/all_kernels.h"

namespace onehop::device {
namespace {

constexpr Shape shape{.groups = 32, .threads = 256, .shared_bytes = codec_shared_bytes};
constexpr std::array codecs{Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3};

// What a device holds and runs: first what kernels write, then what they only read.
struct Trial {
  std::byte* memory = nullptr;   // of the device
  std::vector<std::byte> bytes;  // what is there at first
  std::size_t compared = 0;      // so many of them are results
  struct Step {
    std::string name;  // of the kernel, and what it does
    std::string kernel;
    Shape shape;
    std::vector<std::byte> arguments;
  };
  std::vector<Step> steps;

  // Returns where the numbers will be on the device.
  template <class T>
  T* put(const std::vector<T>& numbers) {
    const std::size_t begin = (bytes.size() + 15) / 16 * 16;
    const auto added = std::as_bytes(std::span(numbers));
    bytes.resize(begin);
    bytes.insert(bytes.end(), added.begin(), added.end());
    return reinterpret_cast<T*>(memory + begin);
  }
  void end_of_results() { compared = bytes.size(); }
  template <class Arguments>
  void launch(const std::string& kernel, const Shape& shape, const Arguments& arguments, const std::string& what = {}) {
    const auto copied = std::as_bytes(std::span(&arguments, 1));
    const std::string name = "onehop_" + kernel;
    steps.push_back({name + what, name, shape, {copied.begin(), copied.end()}});
  }
};

using Words = std::vector<std::uint32_t>;
using Places = std::vector<std::uint64_t>;

// Numbers from -1 to 1 that are the same everywhere.
template <class Number>
std::vector<Number> some(std::size_t count) {
  std::vector<Number> found;
  for (std::uint32_t bits = 1; found.size() < count; bits = bits * 1664525 + 1013904223)  // of Numerical Recipes
    found.push_back(static_cast<Number>(static_cast<std::int32_t>(bits)) * static_cast<Number>(0x1p-31));
  return found;
}

template <class Number>
Amplitude<Number>* put_amplitudes(Trial& trial, std::size_t count) {
  return reinterpret_cast<Amplitude<Number>*>(trial.put(some<Number>(2 * count)));
}

// The data of a step.
template <class Number>
const void* put_data(Trial& trial, TileStepKind kind) {
  if (kind == TileStepKind::phases)
    return trial.put(std::vector<TilePhase>{{.re = 0.6, .im = 0.8, .outer_mask = 16, .mask = 5, .odd = 1},
                                            {.re = -0.3, .im = 0.4, .mask = 6, .values = 2}});
  if (kind != TileStepKind::dense && kind != TileStepKind::table) return trial.put(some<Number>(8));
  // The places of rows, or the bits of an index: bit 1 inside the tile and bit 4 outside.
  const void* const begin = trial.put(kind == TileStepKind::dense ? Words{0, 2, 4, 6} : Words{1, 0, 4, 1});
  put_amplitudes<Number>(trial, 16);
  return begin;
}

// The kernels on states, here of 6 bits.
template <class Number>
void try_states(Trial& trial) {
  constexpr std::size_t size = 64;
  constexpr Shape shape{.groups = 2, .threads = 16, .shared_bytes = 1U << 12U};
  const std::string type = sizeof(Number) == 4 ? "_f32" : "_f64";
  auto* const ket = put_amplitudes<Number>(trial, size);
  auto* const bra = put_amplitudes<Number>(trial, size);
  double* const sums = trial.put(std::vector<double>(size));
  trial.end_of_results();
  // A step of each kind on both states, in tiles of all bits but bit 4.
  const auto* const rows = reinterpret_cast<const unsigned char*>(trial.put(Places{0, 32}));
  const auto offset = [&](const void* at) {
    return static_cast<std::uint64_t>(static_cast<const unsigned char*>(at) - rows);
  };
  constexpr std::array names{", turns", ", phases", ", pair", ", dense", ", table", ", probe"};
  for (std::uint32_t k = 0; k < names.size(); ++k) {
    const auto kind = static_cast<TileStepKind>(k);
    TileStep step{.kind = kind, .count = 2, .x = 6, .z = 17, .controls = 8, .values = 8, .outer_z = 16};
    if (kind != TileStepKind::probe) step.data = offset(put_data<Number>(trial, kind));
    const std::uint64_t steps = offset(trial.put(std::vector{step}));
    const std::uint32_t probes = kind == TileStepKind::probe ? 1 : 0;
    trial.launch("tile_pass" + type, shape, TileArguments{ket, bra, rows, sums, 0b101111, 2, 0, steps, 1, 5, 4, probes},
                 names[k]);
  }
  trial.launch("apply_matrix" + type, shape,
               MatrixArguments{ket, put_amplitudes<Number>(trial, 16), trial.put(Places{0, 1, 8, 9}), 13, 4, 8, 2, 0});
  trial.launch("rotate_string" + type, shape, RotateArguments{ket, 6, 3, 12, 8, 16, 0.6, 0.48, -0.64});
  const std::vector<AddedString> strings{{5, 3, 0.5, 0.25}, {0, 9, -0.3, 0.7}};
  trial.launch("add_strings" + type, shape, AddArguments{ket, bra, trial.put(strings), strings.size(), size});
  WeightArguments weights{.state = ket, .out = sums, .outputs = 2, .parts = 2, .mask = 8, .part_size = 16, .bits = 1};
  weights.bit[0] = 3;
  trial.launch("sum_weights" + type, shape, weights, ", by bits");
  weights.places = trial.put(Places{0, 8});
  weights.bits = 0;
  weights.by_threads = 1;
  trial.launch("sum_weights" + type, shape, weights, ", by places");
  trial.launch("sum_products" + type, shape,
               ProductArguments{ket, bra, sums, 2, 32, 5, 16, 0, {0, 1, 2, 3, 4, 5, 6, 7}, most_strings, 0});
  trial.launch(
      "set_product" + type, shape,
      ProductStateArguments{ket, put_amplitudes<double>(trial, 8), put_amplitudes<double>(trial, 6), size, 3, 6});
  trial.launch("swap_arrays", shape,
               SwapArguments{reinterpret_cast<std::uint64_t*>(ket), reinterpret_cast<std::uint64_t*>(bra), size});
}

// Sums of one rank, which waits for its own flags.
void try_sums(Trial& trial) {
  constexpr std::uint64_t count = 2 * most_tiles * tile_numbers + 5;
  constexpr WindowLayout layout{1, 2};
  unsigned char* const window = trial.put(std::vector<unsigned char>(layout.bytes()));
  float* const target = trial.put(std::vector<float>(count));
  trial.end_of_results();
  const float* const source = trial.put(some<float>(count));
  for (const char* const codec : {"raw", "fp16", "bf16", "fp8", "q8", "q6", "q4", "q3"})
    trial.launch(std::string("all_reduce_") + codec, {2, 64, all_reduce_shared_bytes},
                 AllReduceArguments{{window}, source, target, count, nullptr, NumberType::float32, 0, 1, 2, 1, 2});
}

// A message from a box to a list, which waits for the flag between them.
void try_messages(Trial& trial) {
  auto* const from = reinterpret_cast<unsigned char*>(trial.put(some<float>(64)));
  auto* const to = reinterpret_cast<unsigned char*>(trial.put(std::vector<float>(64)));
  std::uint32_t* const words = trial.put(Words(6));  // the flags of both ends, the runs, and stop
  unsigned char* const wire = trial.put(std::vector<unsigned char>(256));
  trial.end_of_results();
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < 20; ++i) list.push_back(i * 12);
  const auto* const messages = trial.put(
      std::vector<SliceMessage>{{wire, 128, 128, 0, 1, words, words + 1}, {wire, 128, 128, 1, 1, words + 1, words}});
  const auto* const pieces = trial.put(std::vector<SlicePiece>{{from, 0, 20, no_list, {5, 4}, {4, 40}, 2, 4},  //
                                                               {to, 0, 20, 0, {1}, {4}, 1, 4}});
  const std::int64_t* const there = trial.put(list);
  for (const std::uint32_t packs : {1U, 0U})
    trial.launch("move_slices", {1, 16, slice_shared_bytes(16)},
                 SliceArguments{messages + 1 - packs, pieces, there, words + 2, words + 4, 1, packs, 1 - packs, 0},
                 packs != 0 ? ", packing" : ", unpacking");
}

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
  for (const auto& build : {try_states<float>, try_states<double>, try_sums, try_messages})
    compare(device, build, least_room, checks);
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
