// Operations with everything made ready that applying them takes: for small states, where that takes longer than the
// arithmetic.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/quantum/engine.h"
#include "quantum/engine/engine_run.h"
#include "quantum/engine/engine_tile.h"

namespace onehop::quantum {

template <typename T>
class EngineProgram {
 public:
  // Larger states lose nothing by being planned anew, and their tables are larger.
  static constexpr int max_bits = 18;

  // Throws BadInput as `apply` does.
  EngineProgram(int bits, std::vector<LocalOperation> operations);
  EngineProgram(const EngineProgram&) = delete;
  EngineProgram& operator=(const EngineProgram&) = delete;

  // What `apply` does with the same operations, to the last bit. Any number of threads may call it at once.
  EngineCounters run(std::span<std::complex<T>> amplitudes, int threads) const;

 private:
  std::vector<LocalOperation> operations_;  // the programs point to them
  PassList list_;
  std::vector<TileProgram<T>> programs_;  // of the passes with a tile, in their order
};

extern template class EngineProgram<float>;
extern template class EngineProgram<double>;

}  // namespace onehop::quantum
