// Merges a run of diagonal operations on a tile. However many phases there are, each amplitude is multiplied by two
// numbers: an entry of a table over the bits inside a row, and a factor of the row.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "quantum/engine/gate_decomposition.h"
#include "quantum/kernels/kernels.h"

namespace onehop::quantum {

template <typename T>
class DiagonalRun {
 public:
  // The phases refer to bits of the whole index. `scale` multiplies all amplitudes.
  DiagonalRun(std::vector<Phase> phases, double scale) : phases_(std::move(phases)), scale_(scale) {}

  // The number of sweeps over a tile.
  [[nodiscard]] int layers(std::uint64_t tile, const TileShape& shape) const;

  // Computes the tables. `tile`: a mask of the bits of the tile.
  void prepare(std::uint64_t tile, const TileShape& shape);
  // Computes them again, after prepare(), with the factors that the phases of `items` have now and another scale.
  void refill(const Items& items, double scale, const TileShape& shape);

  // Multiplies the entries i where all bits of `mask` have the values `want`, or an odd number of them is set.
  struct Factor {
    Phase::When when = Phase::When::all_of;
    std::uint64_t mask = 0, want = 0;
    std::complex<double> factor;
  };
  // A thread's data for its current tile.
  struct Scratch {
    std::vector<std::complex<double>> monomials, row_factors, low_factors;
    std::vector<Factor> factors;
    std::vector<std::vector<T>> tables;  // for each layer that differs from tile to tile
  };

  // Prepares `scratch` for the tile whose other index bits are `base`.
  void begin_tile(std::uint64_t base, const TileShape& shape, Scratch& scratch) const;
  // Some rows of the tile of the last begin_tile(), or of the tiles of two states.
  struct Rows {
    std::size_t first = 0, count = 0;
    T* ket = nullptr;
    T* bra = nullptr;
    // If not nullptr: before the rows are multiplied, the products of both states are added over the rows to `columns`,
    // and the sum over each row goes to `sums`.
    T* columns = nullptr;
    double* sums = nullptr;
  };
  void apply(const Rows& rows, const TileShape& shape, const Kernels<T>& kernels, const Scratch& scratch) const;

 private:
  using Number = std::complex<double>;

  // The condition of a phase in bits of the tile's index: bits inside a row (low) and bits of the row's number (row).
  struct Inner {
    Phase::When when = Phase::When::all_of;
    std::uint64_t low = 0, low_want = 0, row = 0, row_want = 0;
    friend bool operator==(const Inner&, const Inner&) = default;
  };
  // A factor that differs from tile to tile: the product of its phases in `moving_` whose outer condition holds.
  struct Monomial {
    Inner inner;
    int layer = 0;
    int selector = -1;
  };
  struct Moving {
    Phase::When when = Phase::When::all_of;
    std::uint64_t mask = 0, want = 0;  // bits outside the tile
    Number factor, inverse;
    std::size_t monomial = 0;
  };
  // Tables over the bits in a row, one for each combination of at most `max_selectors` conditions on the row.
  struct Layer {
    std::vector<Inner> selectors;
    std::vector<std::uint8_t> choice;  // for each row, the number of its table
    std::vector<T> tables;
    std::vector<bool> all_one;  // for each table, whether all its entries are 1
    bool moving = false;        // whether the tables differ from tile to tile
  };

  // Phases with equal conditions.
  struct Group {
    std::size_t begin = 0, end = 0;  // in phases_
    Inner inner;
    int layer = 0;
    int selector = -1;
    int moving = -1;  // index into moving_
  };

  [[nodiscard]] static bool holds(Phase::When when, std::uint64_t mask, std::uint64_t want, std::uint64_t i);
  [[nodiscard]] Inner inner_of(const Phase& phase, std::uint64_t tile, const TileShape& shape) const;
  std::pair<int, int> selector_of(const Inner& inner);
  static void fill_products(std::vector<Number>& out, int bits, Number first, std::span<const Factor> factors);
  void fill(const TileShape& shape);
  void fill_layer(std::size_t which, std::span<const Number> factors, const TileShape& shape);
  void factors_of_tile(std::uint64_t base, const TileShape& shape, Scratch& scratch) const;
  // Returns the sum of the row's products, if they are asked for. `table`: nullptr if all entries are 1.
  static double apply_to_row(const Rows& rows, std::size_t at, const T* table, std::complex<T> factor,
                             std::size_t vectors, const Kernels<T>& kernels);
  void tables_of_tile(std::size_t number, const TileShape& shape, Scratch& scratch) const;

  std::vector<Phase> phases_;
  double scale_;
  std::vector<Group> groups_;
  std::vector<Layer> layers_;
  std::vector<Monomial> monomials_;
  std::vector<Moving> moving_;
  std::vector<Number> row_factors_;  // the part that is the same for all tiles
  bool low_moves_ = false, rows_move_ = false;
};

extern template class DiagonalRun<float>;
extern template class DiagonalRun<double>;

// extract_bits moves the bits of `i` under `mask` to the lowest bits (pext); deposit_bits is the inverse (pdep).
[[nodiscard]] std::uint64_t extract_bits(std::uint64_t i, std::uint64_t mask);
[[nodiscard]] std::uint64_t deposit_bits(std::uint64_t i, std::uint64_t mask);

}  // namespace onehop::quantum
