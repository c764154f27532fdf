// Gates that only move amplitudes (X, CX, SWAP and the like), put together: the index that they lead to is linear in the bits of the index
// that they come from, but for flips.
#pragma once

#include <cstdint>
#include <vector>

#include "quantum/engine/gate_decomposition.h"

namespace onehop::quantum {

class Moves {
 public:
  // Whether an operation is one of these.
  [[nodiscard]] static bool takes(const PairOperation& op);

  void add(const PairOperation& op);
  [[nodiscard]] const std::vector<PairOperation>& operations() const { return operations_; }
  [[nodiscard]] bool empty() const { return operations_.empty(); }

  // Where the amplitude at each index of a tile comes from, as a map of the bits of the tile's index: the image of bit b, and what is
  // flipped, always or where the index has `value` under `mask`, bits outside of the tile.
  struct Conditional {
    std::uint64_t mask = 0, value = 0, flip = 0;
  };
  struct Map {
    std::vector<std::uint64_t> images;
    std::uint64_t flip = 0;
    std::vector<Conditional> conditional;

    [[nodiscard]] std::uint64_t of(std::uint64_t index) const;  // without flips
  };
  [[nodiscard]] Map source(std::uint64_t tile) const;

 private:
  std::vector<PairOperation> operations_;
};

}  // namespace onehop::quantum
