// The loops of lossless compression with vectors of bytes. `Isa` has the operations of one instruction set on vectors
// of `Isa::lanes` bytes. Included by the sources that are compiled for one instruction set.
#pragma once

#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "src/codec/lossless_steps.h"

namespace onehop::detail {
namespace {

template <class Isa>
struct LosslessLoops {
  using Octets = LosslessChunk::Octets;
  using Bits = LosslessChunk::Bits;
  static constexpr std::size_t numbers = LosslessChunk::numbers;
  static constexpr std::size_t lanes = Isa::lanes;
  static constexpr std::size_t mask_bytes = lanes / 8;

  // Without the members of std::array: an inline function of the standard library that is compiled here could replace
  // the one that other sources use.
  static const std::uint8_t* octets(const Octets& of) { return reinterpret_cast<const std::uint8_t*>(&of); }
  static std::uint8_t* octets(Octets& of) { return reinterpret_cast<std::uint8_t*>(&of); }
  static auto* halves(auto& of) {
    using Half =
        std::conditional_t<std::is_const_v<std::remove_reference_t<decltype(of)>>, const std::uint16_t, std::uint16_t>;
    return reinterpret_cast<Half*>(&of);
  }

  static std::uint32_t split32(const std::byte* from, LosslessChunk& chunk) {
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < numbers; i += lanes) {
      any |= Isa::split32(from + 4 * i, octets(chunk.exponents) + i, octets(chunk.upper) + i, halves(chunk.lower) + i);
    }
    return any;
  }
  static std::uint32_t split16(const std::byte* from, LosslessChunk& chunk) {
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < numbers; i += lanes) {
      any |= Isa::split16(from + 2 * i, octets(chunk.exponents) + i, octets(chunk.upper) + i);
    }
    return any;
  }
  static void join32(const LosslessChunk& chunk, std::byte* to) {
    for (std::size_t i = 0; i < numbers; i += lanes) {
      Isa::join32(octets(chunk.exponents) + i, octets(chunk.upper) + i, halves(chunk.lower) + i, to + 4 * i);
    }
  }
  static void join16(const LosslessChunk& chunk, std::byte* to) {
    for (std::size_t i = 0; i < numbers; i += lanes) {
      Isa::join16(octets(chunk.exponents) + i, octets(chunk.upper) + i, to + 2 * i);
    }
  }

  static std::uint8_t distances(const Octets& exponents, Octets& below, LosslessChunk::Counts& counts) {
    auto most = Isa::load(octets(exponents));
    for (std::size_t i = lanes; i < numbers; i += lanes) most = Isa::max(most, Isa::load(octets(exponents) + i));
    const std::uint8_t largest = Isa::largest(most);
    const auto top = Isa::everywhere(largest);
    auto* const count = reinterpret_cast<std::size_t*>(&counts);
    for (unsigned w = 0; w < 8; ++w) count[w] = 0;
    for (std::size_t i = 0; i < numbers; i += lanes) {
      const auto distance = Isa::subtract(top, Isa::load(octets(exponents) + i));
      Isa::store(octets(below) + i, distance);
      for (unsigned w = 1; w < 8; ++w) {
        const auto limit = static_cast<std::uint8_t>((1U << w) - 1);
        count[w] += static_cast<std::size_t>(__builtin_popcountll(Isa::at_least(distance, limit)));
      }
    }
    return largest;
  }

  static void put_planes(const Octets& below, unsigned width, std::byte* planes, Bits& in_full) {
    const auto last = static_cast<std::uint8_t>((1U << width) - 1);
    const auto most = Isa::everywhere(last);
    auto* const full = reinterpret_cast<std::byte*>(&in_full);
    for (std::size_t i = 0; i < numbers; i += lanes) {
      const auto codes = Isa::min(Isa::load(octets(below) + i), most);
      for (unsigned plane = 0; plane < width; ++plane) {
        const auto bits = Isa::bits(codes, plane);
        std::memcpy(planes + plane * LosslessChunk::plane_bytes + i / 8, &bits, mask_bytes);
      }
      const auto ends = Isa::at_least(codes, last);
      std::memcpy(full + i / 8, &ends, mask_bytes);
    }
  }

  static void take_planes(const std::byte* planes, unsigned width, std::uint8_t largest, Octets& exponents,
                          Bits& in_full) {
    const auto last = static_cast<std::uint8_t>((1U << width) - 1);
    const auto top = Isa::everywhere(largest);
    auto* const full = reinterpret_cast<std::byte*>(&in_full);
    for (std::size_t i = 0; i < numbers; i += lanes) {
      auto codes = Isa::everywhere(0);
      for (unsigned plane = 0; plane < width; ++plane) {
        codes = Isa::with_bits(codes, planes + plane * LosslessChunk::plane_bytes + i / 8, plane);
      }
      Isa::store(octets(exponents) + i, Isa::subtract(top, codes));
      const auto ends = Isa::at_least(codes, last);
      std::memcpy(full + i / 8, &ends, mask_bytes);
    }
  }

  static constexpr LosslessSteps steps{split32, split16, join32, join16, distances, put_planes, take_planes};
};

}  // namespace
}  // namespace onehop::detail
