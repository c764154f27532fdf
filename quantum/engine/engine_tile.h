// One pass as steps on a tile: what the items of a pass become for one precision and one kind of vector instructions.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "quantum/engine/engine_diagonal.h"
#include "quantum/engine/engine_plan.h"
#include "quantum/engine/gate_decomposition.h"
#include "quantum/kernels/kernels.h"

namespace onehop::quantum {

template <typename T>
class TileProgram {
 public:
  // `pass` is one with a tile. The operations must live as long as the program.
  TileProgram(const Pass& pass, const Items& items, std::span<const LocalOperation> operations, int bits,
              const Kernels<T>& kernels);

  [[nodiscard]] std::size_t tiles() const { return std::size_t{1} << (bits_ - shape_.bits); }
  [[nodiscard]] const TileShape& shape() const { return shape_; }

  // The tables of the diagonals, each prepared once, by any thread, before the first tile.
  [[nodiscard]] std::size_t diagonals() const { return diagonals_.size(); }
  void prepare(std::size_t diagonal) { diagonals_[diagonal].prepare(tile_, shape_); }

  // What became of the pass: `sweeps` and `multiply_adds`.
  void describe(PassSummary& summary) const;

  // Amplitudes change places from one tile's memory to another's. The last time they do so on their way out.
  [[nodiscard]] bool needs_other() const { return permutations_.size() > (moved_out_ ? 1U : 0U); }

  // What a thread needs for its tiles.
  struct Scratch {
    T* tile = nullptr;   // shape().numbers() numbers, aligned to 64 bytes
    T* other = nullptr;  // as much again, if needs_other()
    std::vector<typename DiagonalRun<T>::Scratch> diagonals;
    std::array<double, pass_parts>* parts = nullptr;  // where to add the seconds spent; nullptr: nothing is timed
  };
  void run(std::complex<T>* amplitudes, std::size_t tile, Scratch& scratch) const;

 private:
  enum class StepKind : std::uint8_t {
    butterflies,
    lane_butterflies,
    diagonal,
    pair,
    two_pairs,
    dense,
    lane_matrix,
    permute,
    table
  };
  struct Step {
    StepKind kind = StepKind::diagonal;
    std::size_t index = 0;
  };
  // Steps one after the other; `local`: they mix nothing beyond a block, so that all are done on one block before the
  // next.
  struct Stretch {
    std::size_t begin = 0, end = 0;
    bool local = false;
  };
  struct Butterflies {
    int count = 0;
    int bits[4] = {};
    T tangents[4] = {};
    unsigned signs = 0;  // inside a vector: bits whose amplitudes change their sign before, where they are set
  };
  // What a step asks of the bits outside of the tile.
  struct Outside {
    std::uint64_t controls = 0, control_values = 0, sign = 0;
  };
  struct Pair {
    Outside outside;
    PairStep<T> step;
  };
  struct DenseMatrix {
    Outside outside;
    DenseStep<T> step;
  };
  struct LaneMatrix {
    Outside outside;
    LaneMatrixStep<T> step;
  };
  struct Table {
    const LocalOperation* operation = nullptr;
    std::vector<std::complex<T>> values;
  };
  // Bits outside of the tile may add to the flip.
  struct Permutation {
    PermutationStep step;
    std::uint32_t flip = 0;
    struct Conditional {
      std::uint64_t mask = 0, value = 0;
      std::uint32_t flip = 0;
    };
    std::vector<Conditional> conditional;
  };
  class Builder;

  [[nodiscard]] bool is_local(const Step& step) const;
  [[nodiscard]] static PassPart part_of(StepKind kind);
  void find_stretches();
  // Gathers rows and brings them through a stretch, or the other way round, a block of rows at a time: while they are
  // in the first-level cache.
  void run_stretch(const Stretch& stretch, std::complex<T>* amplitudes, std::uint64_t base, Scratch& scratch,
                   bool gathers, bool scatters) const;
  [[nodiscard]] bool past_caches() const;
  void run_step(const Step& step, std::uint64_t base, std::size_t first_row, const TileShape& shape, T* data,
                const Scratch& scratch) const;
  [[nodiscard]] static std::uint32_t flip_of(const Permutation& permutation, std::uint64_t base);
  void run_table(const Table& table, std::uint64_t base, T* tile) const;

  int bits_;
  std::uint64_t tile_;
  TileShape shape_;
  TileShape block_;  // of neighbouring rows, as many as the first-level cache holds with their tables
  const Kernels<T>& kernels_;
  std::vector<std::uint64_t> offsets_;  // of each row
  std::vector<Step> steps_;
  std::vector<Stretch> stretches_;
  std::vector<Butterflies> butterflies_;
  std::vector<DiagonalRun<T>> diagonals_;
  std::vector<Pair> pairs_;
  std::vector<TwoPairsStep<T>> two_pairs_;
  std::vector<DenseMatrix> dense_;
  std::vector<LaneMatrix> lane_matrices_;
  std::vector<Permutation> permutations_;
  bool moved_out_ = false;  // the last of them is no step: it is done by the scatter
  std::vector<Table> tables_;
  T last_scale_ = 1;
};

extern template class TileProgram<float>;
extern template class TileProgram<double>;

}  // namespace onehop::quantum
