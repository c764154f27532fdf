// A run of diagonal operations on one shape of tile, merged: two numbers are multiplied to each amplitude, one from a
// table over the bits inside a row and one of the row, however many phases there are.
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
  // Phases in bits of the whole index; `scale` is a factor of everything.
  DiagonalRun(std::vector<Phase> phases, double scale) : phases_(std::move(phases)), scale_(scale) {}

  // How many sweeps it takes.
  [[nodiscard]] int layers(std::uint64_t tile, const TileShape& shape) const;

  // Makes the tables. `tile`: the bits of the tile.
  void prepare(std::uint64_t tile, const TileShape& shape);

  // What a thread keeps of a tile while it works on it.
  struct Scratch {
    std::vector<std::complex<double>> monomials, row_factors, low_factors;
    std::vector<std::vector<T>> tables;  // of each layer that differs from tile to tile
  };

  // For the tile whose other bits are `base`.
  void begin_tile(std::uint64_t base, const TileShape& shape, Scratch& scratch) const;
  // Multiplies `count` rows, the first of which is row `first` of the tile begun and lies at `rows`.
  void apply(T* rows, std::size_t first, std::size_t count, const TileShape& shape, const Kernels<T>& kernels,
             const Scratch& scratch) const;

 private:
  using Number = std::complex<double>;

  // When a phase acts, in bits of the tile's index; the bits in a row and those of the row's number apart.
  struct Inner {
    Phase::When when = Phase::When::all_of;
    std::uint64_t low = 0, low_want = 0, row = 0, row_want = 0;
    friend bool operator==(const Inner&, const Inner&) = default;
  };
  // A factor that differs from tile to tile: the product of those of `moving_` that hold outside of the tile.
  struct Monomial {
    Inner inner;
    int layer = 0;
    int selector = -1;
  };
  struct Moving {
    Phase::When when = Phase::When::all_of;
    std::uint64_t mask = 0, want = 0;  // outside of the tile
    Number factor, inverse;
    std::size_t monomial = 0;
  };
  // Tables over the bits in a row, one for each combination of at most `max_selectors` conditions on the row.
  struct Layer {
    std::vector<Inner> selectors;
    std::vector<std::uint8_t> choice;  // of each row
    std::vector<T> tables;
    std::vector<bool> all_one;  // of each table
    bool moving = false;        // multiplied by what differs from tile to tile
  };

  [[nodiscard]] static bool holds(Phase::When when, std::uint64_t mask, std::uint64_t want, std::uint64_t i);
  [[nodiscard]] Inner inner_of(const Phase& phase, std::uint64_t tile, const TileShape& shape) const;
  std::pair<int, int> selector_of(const Inner& inner);
  void fill_layer(std::size_t which, std::span<const std::pair<Inner, Number>> fixed, const TileShape& shape);
  void factors_of_tile(std::uint64_t base, const TileShape& shape, Scratch& scratch) const;
  void tables_of_tile(std::size_t number, const TileShape& shape, Scratch& scratch) const;

  std::vector<Phase> phases_;
  double scale_;
  std::vector<Layer> layers_;
  std::vector<Monomial> monomials_;
  std::vector<Moving> moving_;
  std::vector<Number> row_factors_;  // what does not differ from tile to tile
  bool low_moves_ = false, rows_move_ = false;
};

extern template class DiagonalRun<float>;
extern template class DiagonalRun<double>;

// The bits of `i` that `mask` selects, moved together; and apart again.
[[nodiscard]] std::uint64_t together(std::uint64_t i, std::uint64_t mask);
[[nodiscard]] std::uint64_t apart(std::uint64_t i, std::uint64_t mask);

}  // namespace onehop::quantum
