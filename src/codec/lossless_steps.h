// The loops of lossless compression over a chunk of 256 numbers, for each instruction set. All give the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace onehop::detail {

struct LosslessChunk {
  static constexpr std::size_t numbers = 256;  // that share a base
  static constexpr std::size_t plane_bytes = numbers / 8;
  using Octets = std::array<std::uint8_t, numbers>;
  using Bits = std::array<std::uint64_t, numbers / 64>;  // a bit for each number
  using Counts = std::array<std::size_t, 8>;

  alignas(64) Octets exponents;
  alignas(64) Octets upper;  // sign, and the 7 upper bits of the mantissa
  alignas(64) std::array<std::uint16_t, numbers> lower;
};

struct LosslessSteps {
  using Octets = LosslessChunk::Octets;

  // Takes numbers of 4 or 2 bytes apart, and returns the union of their bits.
  std::uint32_t (*split32)(const std::byte* from, LosslessChunk& chunk);
  std::uint32_t (*split16)(const std::byte* from, LosslessChunk& chunk);
  void (*join32)(const LosslessChunk& chunk, std::byte* to);
  void (*join16)(const LosslessChunk& chunk, std::byte* to);

  // Stores how far each exponent is below the largest one, which is returned, and in counts[w] how many are at least
  // 2^w - 1 below it, for w from 1 to 7.
  std::uint8_t (*distances)(const Octets& exponents, Octets& below, LosslessChunk::Counts& counts);

  // Codes have 1 to 7 bits. Bit p of all codes is plane p, of LosslessChunk::plane_bytes bytes. `in_full` has the
  // numbers whose code has all bits set.
  void (*put_planes)(const Octets& below, unsigned width, std::byte* planes, LosslessChunk::Bits& in_full);
  // Stores the exponents that codes of 0 to 7 bits stand for.
  void (*take_planes)(const std::byte* planes, unsigned width, std::uint8_t largest, Octets& exponents,
                      LosslessChunk::Bits& in_full);
};

[[nodiscard]] const LosslessSteps& lossless_portable() noexcept;
// Null where the build has no such code; the processor must support it.
[[nodiscard]] const LosslessSteps* lossless_avx2() noexcept;
[[nodiscard]] const LosslessSteps* lossless_avx512() noexcept;

}  // namespace onehop::detail
