// Compiled operations: passes, steps and tables are computed once and reused. For small states, where this takes longer
// than the arithmetic.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
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
  // The same for two states: the tables of derivatives take longer.
  static constexpr int max_bits_of_two = 22;

  enum class States : std::uint8_t { one, two };

  // Compiles for one or two states, with at most this many threads. Throws BadInput as `apply` does.
  EngineProgram(int bits, std::vector<LocalOperation> operations, States states = States::one, int threads = 1);
  // Gives the operations that vary other angles: that of each is angles[source]. The passes stay as they are, only
  // numbers in tables change. Not while another thread runs the program.
  void refill(std::span<const double> angles, int threads);
  EngineProgram(const EngineProgram&) = delete;
  EngineProgram& operator=(const EngineProgram&) = delete;

  // Gives the same bits as `apply` or `apply_to_both` with the same operations. Safe to call from several threads at
  // once.
  EngineCounters run(const EngineStates<T>& states, int threads) const;

 private:
  void compile(int threads);
  void make(std::size_t number);

  int bits_;
  TileSizes sizes_;
  std::vector<LocalOperation> operations_;  // the programs point to them
  PassList list_;
  std::vector<std::unique_ptr<TileProgram<T>>> programs_;  // of each pass; null: it has no tile
};

extern template class EngineProgram<float>;
extern template class EngineProgram<double>;

}  // namespace onehop::quantum
