// Compiled operations: passes, steps and tables are computed once and reused. For small states, where this takes longer
// than the arithmetic.
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
  // The largest state worth compiling for. For larger ones planning takes little of the time, and tables get larger.
  static constexpr int max_bits = 18;

  // Throws BadInput as `apply` does.
  EngineProgram(int bits, std::vector<LocalOperation> operations);
  // Gives the operations that vary other angles: that of each is angles[source]. The passes stay as they are, only
  // numbers in tables change. Not while another thread runs the program.
  void refill(std::span<const double> angles);
  EngineProgram(const EngineProgram&) = delete;
  EngineProgram& operator=(const EngineProgram&) = delete;

  // Gives the same bits as `apply` with the same operations. Safe to call from several threads at once.
  EngineCounters run(std::span<std::complex<T>> amplitudes, int threads) const;

 private:
  void compile();

  int bits_;
  std::vector<LocalOperation> operations_;  // the programs point to them
  PassList list_;
  std::vector<TileProgram<T>> programs_;  // for the passes with a tile, in order
};

extern template class EngineProgram<float>;
extern template class EngineProgram<double>;

}  // namespace onehop::quantum
