// `onehop bench codec`: encoding and decoding float32 on one core, against a plain copy of the same numbers.
#include <cstring>
#include <random>

#include "bench/native/bench.h"
#include "src/codec/codec_loops.h"
#include "src/codec/codec_run.h"

namespace onehop::bench {
namespace {

constexpr std::int64_t float_bytes = 4;

// One candidate's own memory, so that none finds its data in cache because of another.
struct Work {
  std::vector<float> numbers;  // normally distributed
  std::vector<std::byte> wire;

  Work(std::int64_t bytes, std::int64_t wire_bytes)
      : numbers(static_cast<std::size_t>(bytes / float_bytes)), wire(static_cast<std::size_t>(wire_bytes)) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& number : numbers) number = normal(random);
  }
  [[nodiscard]] std::byte* memory() { return reinterpret_cast<std::byte*>(numbers.data()); }
};

// The candidates are the loops that onehop chooses on this processor and the others that it could run.
std::vector<Samples> measured(const Group& group, Codec codec, bool encode, std::int64_t bytes, const Effort& effort) {
  const std::int64_t unit = float_bytes * detail::group_elements;
  if (codec == Codec::raw || bytes < unit || bytes % unit != 0) {
    throw BadInput("expected a codec other than raw and a multiple of 128 bytes, found " +
                   std::string(to_string(codec)) + " and " + std::to_string(bytes));
  }
  Arena arena(group);
  std::vector<std::unique_ptr<Work>> works;
  std::vector<Candidate> candidates;
  for (const auto* set : detail::available_codecs()) {
    Work& work = *works.emplace_back(
        std::make_unique<Work>(bytes, encoded_bytes(codec, ElementType::float32, bytes / float_bytes)));
    const detail::CodecLoops& loops = set->of[static_cast<std::size_t>(codec)];
    const auto run = [&work, &loops, groups = bytes / unit](bool encodes) {
      encodes ? loops.encode(work.memory(), groups, work.wire.data())
              : loops.decode_add(work.wire.data(), groups, work.memory());
    };
    run(true);
    candidates.push_back(repeated(std::string("onehop, ") + set->name, works.size() == 1 ? Role::ours : Role::variant,
                                  [run, encode] { run(encode); }));
  }
  Work copy(bytes, bytes);
  candidates.push_back(repeated("speed of light: copy", Role::speed_of_light, [&copy] {
    std::memcpy(copy.wire.data(), copy.memory(), copy.wire.size());
    __asm__ volatile("" : : "r"(copy.wire.data()) : "memory");
  }));
  return run_rounds(arena, candidates, effort);
}

}  // namespace

void bind_codec(nb::module_& module) {
  module.def(
      "codec",
      [](const Group& group, const std::string& codec, bool encode, std::int64_t bytes, const Effort& effort) {
        return samples::measure([&] { return measured(group, codec_from_string(codec), encode, bytes, effort); });
      },
      "group"_a, "codec"_a, "encode"_a, "bytes"_a, "effort"_a,
      "Measure the encoding, or else the decoding and adding, of `bytes` bytes of float32.");
}

}  // namespace onehop::bench
