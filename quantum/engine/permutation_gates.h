// Combines gates that only permute amplitudes (X, CX, SWAP and the like). The new index of an amplitude is an affine
// function of the bits of its old index.
#pragma once

#include <cstdint>
#include <vector>

#include "quantum/engine/gate_decomposition.h"

namespace onehop::quantum {

class PermutationGates {
 public:
  // Whether an operation is a permutation gate.
  [[nodiscard]] static bool takes(const PairOperation& op);

  void add(const PairOperation& op);
  [[nodiscard]] const std::vector<PairOperation>& operations() const { return operations_; }
  [[nodiscard]] bool empty() const { return operations_.empty(); }

  // Maps each index of a tile to the index that its amplitude comes from: `images` gives the image of each bit of the
  // tile's index, and `flip` the bits that are flipped always. A `Conditional` flips bits where the index has `value`
  // under `mask`, which covers bits outside the tile.
  struct Conditional {
    std::uint64_t mask = 0, value = 0, flip = 0;
  };
  struct Map {
    std::vector<std::uint64_t> images;
    std::uint64_t flip = 0;
    std::vector<Conditional> conditional;

    [[nodiscard]] std::uint64_t of(std::uint64_t index) const;  // the source of an index, before flips
  };
  [[nodiscard]] Map source(std::uint64_t tile) const;

 private:
  std::vector<PairOperation> operations_;
};

}  // namespace onehop::quantum
