#include "src/codec/encoded_sum.h"

#include <algorithm>
#include <bit>

#include "src/base/simd.h"
#include "src/codec/codec_loops.h"
#include "src/codec/codec_run.h"

namespace onehop {
namespace {

// Numbers per block, few enough that a block stays in the first-level cache together with its sources.
constexpr std::int64_t block = 1024;
constexpr std::int64_t float_bytes = 4;

// Divides each number. A power of two has an exact inverse, so the faster multiplication gives the same bits.
void divide(float* numbers, std::int64_t elements, int by) noexcept {
  using Four = simd::Vector<float, 4>;
  const bool exact = std::has_single_bit(static_cast<unsigned>(by));
  const float inverse = 1.0F / static_cast<float>(by);
  const auto divisor = static_cast<float>(by);
  for (std::int64_t i = 0; i < elements; i += 4) {  // may run past `elements`: the memory is that of a whole block
    auto four = simd::load<Four>(numbers + i);
    four = exact ? four * inverse : four / divisor;
    simd::store(numbers + i, four);
  }
}

}  // namespace

void add_encoded(const EncodedSum& sum, std::int64_t elements, std::byte* wire, std::byte* result) noexcept {
  if (sum.sources.size() == 2 && sum.plain >= 0 && wire != nullptr) {
    const bool own_first = sum.plain == 0;
    const detail::Pair pair{sum.sources[own_first ? 0 : 1], sum.sources[own_first ? 1 : 0], own_first, sum.mean};
    if (detail::reduce(sum.codec, pair, elements, wire, result)) return;
  }
  alignas(64) float total[block];
  auto* const bytes = reinterpret_cast<std::byte*>(total);
  const auto count = static_cast<int>(sum.sources.size());
  const std::int64_t wire_block = encoded_bytes(sum.codec, ElementType::float32, block);
  for (std::int64_t first = 0, at = 0; first < elements; first += block, at += wire_block) {
    const std::int64_t now = std::min(block, elements - first);
    for (int s = 0; s < count; ++s) {
      const std::byte* const from = sum.sources[static_cast<std::size_t>(s)];
      if (s == sum.plain) {
        (s == 0 ? detail::round : detail::round_add)(sum.codec, from + first * float_bytes, now, nullptr, bytes);
      } else {
        (s == 0 ? detail::decode : detail::decode_add)(sum.codec, ElementType::float32, from + at, now, bytes);
      }
    }
    if (sum.mean) divide(total, now, count);
    detail::round(sum.codec, bytes, now, wire == nullptr ? nullptr : wire + at, result + first * float_bytes);
  }
}

}  // namespace onehop
