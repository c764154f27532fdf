// A pass compiled to steps on a tile, for one precision and one instruction set.
#pragma once

#include <array>
#include <bit>
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "quantum/engine/encoded_amplitudes.h"
#include "quantum/engine/engine_diagonal.h"
#include "quantum/engine/engine_plan.h"
#include "quantum/engine/gate_decomposition.h"
#include "quantum/kernels/kernels.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {

template <typename T>
class TileProgram {
 public:
  // `pass` must have a tile. The operations must outlive the program. `permutes_on_scatter`: whether the scatter may
  // perform a final permutation.
  TileProgram(const Pass& pass, const Items& items, std::span<const LocalOperation> operations, int bits,
              const Kernels<T>& kernels, bool permutes_on_scatter = true);

  [[nodiscard]] std::size_t tiles() const { return std::size_t{1} << (bits_ - shape_.bits); }
  // A tile that holds the whole state is worked on in several parts, which threads share; otherwise 1.
  [[nodiscard]] std::size_t parts() const { return parts_; }
  [[nodiscard]] const TileShape& shape() const { return shape_; }

  // The diagonals. Each must be prepared once, on any thread, before the first tile runs.
  [[nodiscard]] std::size_t diagonals() const { return diagonals_.size(); }
  void prepare(std::size_t diagonal) { diagonals_[diagonal].prepare(tile_, shape_); }

  // Gives all steps the numbers of `items`, which must be those of the program but for `refresh`. Not before prepare().
  // Returns false if other numbers need other steps; the program is then of no use.
  [[nodiscard]] bool refill(const Items& items);

  // Sets `sweeps` and `multiply_adds`.
  void describe(PassSummary& summary) const;

  // Per amplitude of one state, with run_both().
  [[nodiscard]] double multiply_adds_of_two() const { return multiply_adds_of_two_; }

  // Whether a second tile is needed: permutations copy from one tile to the other. A final permutation needs none,
  // because the scatter performs it.
  [[nodiscard]] bool needs_other() const { return permutations_.size() > (permutes_on_scatter_ ? 1U : 0U); }

  // The work space of a part of a tile. The parts of a tile have the same memory for the tile itself.
  struct Scratch {
    std::size_t part = 0;
    T* tile = nullptr;   // shape().numbers() numbers, aligned to 64 bytes
    T* other = nullptr;  // the same size, if needs_other()
    // For derivatives: the bra's tile, of the same size, and probes() sums over the part of the current tile.
    T* bra = nullptr;
    double* sums = nullptr;
    std::vector<T> columns;    // for each sweep of diagonal probes, the products of a row, added over rows
    std::vector<double> rows;  // and the sum of the products of each row
    std::vector<typename DiagonalRun<T>::Scratch> diagonals;
    std::array<double, pass_parts>* parts = nullptr;  // receives the seconds spent; nullptr: nothing is timed
    EncodedRows* encoded = nullptr;                   // instead of the ket; in single precision
  };
  // Sets the sizes of the vectors, so that run() allocates nothing where the tile holds the whole state.
  void prepare_scratch(Scratch& scratch) const;
  // Runs the steps on a tile of one state, or on the tiles of two where `bra` is not nullptr, and then adds up the
  // products of both where the pass has probes. `parts`: those of the tile that this thread works on. The threads that
  // have the other ones meet at the barrier; without one this thread has all.
  void run(std::complex<T>* ket, std::complex<T>* bra, std::size_t tile, std::span<Scratch> parts,
           base::Barrier* barrier) const;
  // The result to which each of the sums of a tile belongs.
  [[nodiscard]] const std::vector<int>& probes() const { return probes_; }
  // The factor of each of the sums.
  [[nodiscard]] const std::vector<double>& probe_scales() const { return probe_scales_; }

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
    table,
    diagonal_probes,
    vector_probes,
    lane_probes,
    pair_probe,
    probed_butterflies,
    probed_lane_butterflies
  };
  struct Step {
    StepKind kind = StepKind::diagonal;
    std::size_t index = 0;
    int probes = -1;  // of a diagonal: in diagonal_probes_, products that it makes first
  };
  // Consecutive steps that mix only amplitudes within a block, so that all run on one block before the next; or one
  // other step. `split`: the bits of the vector number that tell the parts of the tile apart, none of which it mixes.
  struct Stretch {
    std::size_t begin = 0, end = 0;
    bool local = false;
    bool permutes = false;
    std::size_t split = 0;
  };
  // The states that something is done with; nullptr: not with this one.
  struct States {
    std::complex<T>* ket = nullptr;
    std::complex<T>* bra = nullptr;
  };
  struct Butterflies {
    int count = 0;
    int bits[4] = {};
    T tangents[4] = {};
    int sources[4] = {-1, -1, -1, -1};  // of the tangents, in Items::butterflies
    unsigned signs = 0;  // lane bits: amplitudes are negated first, once per bit that is set in their lane
  };
  // A step's controls and sign mask on index bits outside the tile.
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
  // Index bits outside the tile may change the flip.
  struct Permutation {
    PermutationStep step;
    std::uint32_t flip = 0;
    struct Conditional {
      std::uint64_t mask = 0, value = 0;
      std::uint32_t flip = 0;
    };
    std::vector<Conditional> conditional;
  };
  // Rotations omit their cosines, so amplitudes are smaller by a scale than they should be. These events change it, or
  // use it, in the order of steps.
  struct ScaleEvent {
    enum class Kind : std::uint8_t {
      layer,     // multiplied by the cosines of layer_[begin .. end)
      diagonal,  // diagonals_[index] multiplies by it, and it is 1 again
      // Both factors of the products of sum `index` are smaller by it, and by the cosines of layer_[begin .. end), the
      // part of the next layer that comes before the products.
      probe,
    };
    Kind kind = Kind::layer;
    std::size_t index = 0, begin = 0, end = 0;
  };
  // A probe on a tile: where its sum goes, and the factor of it.
  struct ProbeSum {
    std::size_t sum = 0;
    double factor = 0;
  };
  // Probes of one sweep that need the products of each amplitude with itself. Each depends on the bits inside a row, or
  // on those of the row's number.
  struct DiagonalProbes {
    struct One {
      Outside outside;
      ProbeSum to;
      bool in_row = false;
      std::size_t sign = 0, controls = 0, control_values = 0;  // masks of the column or of the row
    };
    std::vector<One> ones;
    std::size_t columns = 0;  // the place of the sweep's columns in Scratch::columns
  };
  // Probes of Y on up to three bits of the vector number, or on lane bits.
  struct BitProbes {
    int count = 0;
    int bits[4] = {};
    ProbeSum to[4];
  };
  // Probes on the bits of butterflies, in one sweep: the products come first.
  struct ProbedButterflies {
    std::size_t probes = 0;       // in bit_probes_
    std::size_t butterflies = 0;  // in butterflies_
  };
  struct PairProbe {
    Outside outside;
    ProbeSum to;
    ProbeStep step;
    std::vector<double> lanes;  // the factor of each lane: its sign, or 0
  };
  class Builder;

  [[nodiscard]] bool is_local(const Step& step) const;
  [[nodiscard]] static PassPart part_of(StepKind kind);
  [[nodiscard]] static bool is_probe(StepKind kind) { return kind >= StepKind::diagonal_probes; }
  [[nodiscard]] double multiply_adds_of_probe(const Step& step) const;
  // The product of the cosines of layer_[begin .. end).
  [[nodiscard]] double cosines_of(const Items& items, std::size_t begin, std::size_t end) const;
  void find_stretches();
  // The bits of the vector number that the step mixes or watches; with those on which only its signs depend, if wanted.
  [[nodiscard]] std::size_t bits_of(const Step& step, bool with_signs) const;
  // The highest bits of the vector number that tell the parts apart, none of them in `unsplittable`; fewer than there
  // are parts if not enough are left.
  [[nodiscard]] std::size_t split_without(std::size_t unsplittable) const;
  // The shape with the mask of a part.
  [[nodiscard]] TileShape shape_of_part(std::size_t split, std::size_t part) const;
  [[nodiscard]] bool has_part(std::size_t split, std::size_t part) const {
    return part < std::size_t{1} << std::popcount(split);
  }
  [[nodiscard]] std::size_t rows_of_part() const { return shape_.rows() / parts_; }
  void count_multiply_adds();
  void gather(const std::complex<T>* amplitudes, std::uint64_t base, const Scratch& scratch, T* tile) const;
  void scatter(std::complex<T>* amplitudes, std::uint64_t base, const Scratch& scratch, const T* tile) const;
  // Copy the rows of the shape, from `row` on, between the amplitudes and a tile.
  void load(const std::complex<T>* amplitudes, std::uint64_t base, std::size_t row, const TileShape& shape, T* tile,
            EncodedRows* encoded, std::size_t following) const;
  void store(std::complex<T>* amplitudes, std::uint64_t base, std::size_t row, const TileShape& shape, const T* tile,
             EncodedRows* encoded) const;
  void permute(const Stretch& stretch, std::uint64_t base, std::size_t part, T*& tile, T*& other) const;
  // Runs a stretch on a part of the tile, a block of rows at a time if it is local, so that a block stays in L1.
  // `gathers` and `scatters`: also load the rows from the amplitudes before, and store them after.
  void run_stretch(const Stretch& stretch, const States& states, std::uint64_t base, Scratch& scratch, bool gathers,
                   bool scatters) const;
  // Adds the products of two tiles, or of two blocks of them that begin with row `first_row`.
  void run_probe(const Step& step, std::uint64_t base, std::size_t first_row, const TileShape& shape, T* ket, T* bra,
                 Scratch& scratch) const;
  void run_bit_probes(const Step& step, const TileShape& shape, T* ket, T* bra, Scratch& scratch) const;
  // Adds the sums over rows, scratch.rows, to the probes that depend on the row's number.
  void add_row_sums(const DiagonalProbes& probes, std::uint64_t base, std::size_t first_row, std::size_t rows,
                    Scratch& scratch) const;
  void finish_diagonal_probes(std::uint64_t base, Scratch& scratch) const;
  [[nodiscard]] bool past_caches() const;
  // On one state, or on two where `bra` is not nullptr.
  void run_diagonal(const Step& step, std::uint64_t base, std::size_t first_row, const TileShape& shape, T* data,
                    T* bra, Scratch& scratch) const;
  void run_step(const Step& step, std::uint64_t base, std::size_t part, const TileShape& shape, T* data) const;
  [[nodiscard]] static std::uint32_t flip_of(const Permutation& permutation, std::uint64_t base);
  void run_table(const Table& table, std::uint64_t base, std::size_t part, T* tile) const;

  int bits_;
  std::uint64_t tile_;
  TileShape shape_;
  std::size_t parts_ = 1;
  TileShape block_;  // consecutive rows, as many as L1 holds together with their tables
  const Kernels<T>& kernels_;
  std::vector<std::uint64_t> offsets_;  // of each row in the amplitudes
  std::vector<Step> steps_;
  std::vector<Stretch> stretches_;
  std::vector<Butterflies> butterflies_;
  std::vector<DiagonalRun<T>> diagonals_;
  std::vector<Pair> pairs_;
  std::vector<TwoPairsStep<T>> two_pairs_;
  std::vector<DenseMatrix> dense_;
  std::vector<LaneMatrix> lane_matrices_;
  std::vector<Permutation> permutations_;
  bool permutes_on_scatter_;  // the scatter performs the last permutation, which is not in steps_
  std::vector<Table> tables_;
  std::vector<DiagonalProbes> diagonal_probes_;
  std::vector<BitProbes> bit_probes_;
  std::vector<PairProbe> pair_probes_;
  std::vector<ProbedButterflies> probed_butterflies_;
  std::vector<int> probes_;
  std::vector<double> probe_scales_;
  std::vector<ScaleEvent> scale_events_;
  std::vector<int> layer_;  // indices into Items::butterflies
  double multiply_adds_of_two_ = 0;
  T last_scale_ = 1;
};

extern template class TileProgram<float>;
extern template class TileProgram<double>;

}  // namespace onehop::quantum
