// Encodes the passes of an engine's plan as programs of the kernel of passes (src/device/tile_kernel.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "onehop/quantum/engine.h"
#include "quantum/engine/engine_run.h"
#include "src/device/tile_kernel.h"

namespace onehop::quantum {

// Bytes for the memory of a device, 16-byte aligned pieces.
class DeviceBytes {
 public:
  // Appends the numbers and returns where they begin.
  template <typename T>
  std::size_t add(std::span<const T> numbers) {
    const std::size_t begin = (bytes_.size() + 15) / 16 * 16;
    bytes_.resize(begin + numbers.size_bytes());
    std::ranges::copy(std::as_bytes(numbers), bytes_.begin() + static_cast<std::ptrdiff_t>(begin));
    return begin;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// The program of a pass that has a tile, appended to `bytes`, which become the arguments' `program`.
template <typename T>
struct TilePass {
  device::TileArguments arguments;
  bool needs_other = false;     // whether a step needs the other tile
  std::vector<int> results;     // of each probe: where its sum goes
  std::vector<double> factors;  // of the sum
};
template <typename T>
[[nodiscard]] TilePass<T> encode_pass(const Pass& pass, const Items& items, std::span<const LocalOperation> operations,
                                      int bits, DeviceBytes& bytes);

}  // namespace onehop::quantum
