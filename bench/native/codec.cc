// `onehop bench codec`: encoding and decoding float32 on one core, against a plain copy of the same numbers.
#include <cstring>
#include <random>

#include "bench/native/benchmarks.h"
#include "src/codec/codec_loops.h"
#include "src/codec/codec_run.h"

namespace onehop::bench {
namespace {

constexpr std::int64_t float_bytes = 4;

std::vector<float> normal_numbers(std::int64_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(n));
  for (float& number : numbers) number = normal(random);
  return numbers;
}

// One candidate's own memory, so that none finds its data in cache because of another.
struct Work {
  std::vector<float> numbers;
  std::vector<std::byte> wire;

  [[nodiscard]] std::byte* memory() { return reinterpret_cast<std::byte*>(numbers.data()); }
};

void run_once(Work& work, const detail::CodecLoops& loops, CodecStep step) {
  const std::int64_t groups = static_cast<std::int64_t>(work.numbers.size()) / detail::group_elements;
  if (step == CodecStep::encode) return loops.encode(work.memory(), groups, work.wire.data());
  (step == CodecStep::decode ? loops.decode : loops.decode_add)(work.wire.data(), groups, work.memory());
}

}  // namespace

std::vector<Samples> codec(const Group& group, Codec codec, CodecStep step, std::int64_t bytes, const Effort& effort) {
  const std::int64_t unit = float_bytes * detail::group_elements;
  if (codec == Codec::raw || bytes < unit || bytes % unit != 0) {
    throw BadInput("expected a codec other than raw and a multiple of 128 bytes, found " +
                   std::string(to_string(codec)) + " and " + std::to_string(bytes));
  }
  Arena arena(group);
  const auto sets = detail::available_codecs();
  std::vector<Work> works(sets.size() + 1);
  std::vector<Candidate> candidates;
  for (std::size_t s = 0; s < sets.size(); ++s) {
    Work& work = works[s];
    const detail::CodecLoops& loops = sets[s]->of[static_cast<std::size_t>(codec)];
    work.numbers = normal_numbers(bytes / float_bytes);
    work.wire.resize(static_cast<std::size_t>(encoded_bytes(codec, ElementType::float32, bytes / float_bytes)));
    run_once(work, loops, CodecStep::encode);
    candidates.push_back({std::string("onehop, ") + sets[s]->name, s == 0 ? Role::ours : Role::variant,
                          [&work, &loops, step](int repetitions) {
                            for (int i = 0; i < repetitions; ++i) run_once(work, loops, step);
                          }});
  }
  Work& copy = works.back();
  copy.numbers = normal_numbers(bytes / float_bytes);
  copy.wire.resize(static_cast<std::size_t>(bytes));
  candidates.push_back({"speed of light: copy", Role::speed_of_light, [&copy, bytes](int repetitions) {
                          for (int i = 0; i < repetitions; ++i) {
                            std::memcpy(copy.wire.data(), copy.memory(), static_cast<std::size_t>(bytes));
                            __asm__ volatile("" : : "r"(copy.wire.data()) : "memory");
                          }
                        }});
  return run_rounds(arena, candidates, effort);
}

}  // namespace onehop::bench
