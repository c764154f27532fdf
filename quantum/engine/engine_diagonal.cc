#include "quantum/engine/engine_diagonal.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "quantum/engine/complex_product.h"

namespace onehop::quantum {
namespace {

using Number = std::complex<double>;

constexpr std::size_t max_selectors = 4;

bool single_bit(std::uint64_t mask, std::uint64_t want) { return std::has_single_bit(mask) && want == mask; }

}  // namespace

std::uint64_t extract_bits(std::uint64_t i, std::uint64_t mask) {
  std::uint64_t result = 0;
  for (int to = 0; mask != 0; mask &= mask - 1, ++to) result |= (i >> std::countr_zero(mask) & 1) << to;
  return result;
}

std::uint64_t deposit_bits(std::uint64_t i, std::uint64_t mask) {
  std::uint64_t result = 0;
  for (; mask != 0; mask &= mask - 1, i >>= 1) result |= (i & 1) << std::countr_zero(mask);
  return result;
}

template <typename T>
bool DiagonalRun<T>::holds(Phase::When when, std::uint64_t mask, std::uint64_t want, std::uint64_t i) {
  return when == Phase::When::all_of ? (i & mask) == want : std::popcount(i & mask) % 2 != 0;
}

template <typename T>
typename DiagonalRun<T>::Inner DiagonalRun<T>::inner_of(const Phase& phase, std::uint64_t tile,
                                                        const TileShape& shape) const {
  const std::uint64_t mask = extract_bits(phase.mask & tile, tile);
  const std::uint64_t want = extract_bits(phase.want & tile, tile);
  const std::uint64_t low = (std::uint64_t{1} << shape.row_bits) - 1;
  // The parity of a single bit is the bit itself.
  if (phase.when == Phase::When::odd && std::has_single_bit(mask)) {
    return {Phase::When::all_of, mask & low, mask & low, mask >> shape.row_bits, mask >> shape.row_bits};
  }
  return {phase.when, mask & low, want & low, mask >> shape.row_bits, want >> shape.row_bits};
}

// Returns the layer of a phase's condition on the row, and its position among the layer's selectors; adds it if new.
template <typename T>
std::pair<int, int> DiagonalRun<T>::selector_of(const Inner& inner) {
  const Inner condition{inner.when, 0, 0, inner.row, inner.row_want};
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const auto& selectors = layers_[l].selectors;
    const auto it = std::find(selectors.begin(), selectors.end(), condition);
    if (it != selectors.end()) return {static_cast<int>(l), static_cast<int>(it - selectors.begin())};
  }
  if (layers_.back().selectors.size() == max_selectors) layers_.emplace_back();
  layers_.back().selectors.push_back(condition);
  return {static_cast<int>(layers_.size()) - 1, static_cast<int>(layers_.back().selectors.size()) - 1};
}

template <typename T>
int DiagonalRun<T>::layers(std::uint64_t tile, const TileShape& shape) const {
  std::vector<Inner> conditions;
  for (const Phase& phase : phases_) {
    const Inner inner = inner_of(phase, tile, shape);
    const Inner condition{inner.when, 0, 0, inner.row, inner.row_want};
    if (inner.low == 0 || inner.row == 0) continue;
    if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end()) conditions.push_back(condition);
  }
  return std::max(1, static_cast<int>((conditions.size() + max_selectors - 1) / max_selectors));
}

template <typename T>
void DiagonalRun<T>::prepare(std::uint64_t tile, const TileShape& shape) {
  std::sort(phases_.begin(), phases_.end(), [](const Phase& a, const Phase& b) {
    return std::tuple(a.when, a.mask, a.want) < std::tuple(b.when, b.mask, b.want);
  });
  layers_.assign(1, {});
  row_factors_.assign(shape.rows(), scale_);
  std::vector<std::vector<std::pair<Inner, Number>>> fixed(1);
  for (std::size_t i = 0; i < phases_.size();) {
    const Phase phase = phases_[i];
    Number factor = 1;
    for (; i < phases_.size() && phases_[i].when == phase.when && phases_[i].mask == phase.mask &&
           phases_[i].want == phase.want;
         ++i) {
      factor *= phases_[i].factor;
    }
    const Inner inner = inner_of(phase, tile, shape);
    const auto [layer, selector] = inner.low != 0 && inner.row != 0 ? selector_of(inner) : std::pair(0, -1);
    fixed.resize(layers_.size());
    if ((phase.mask & ~tile) != 0) {
      auto it = std::find_if(monomials_.begin(), monomials_.end(), [&](const Monomial& m) { return m.inner == inner; });
      if (it == monomials_.end()) it = monomials_.insert(it, {inner, layer, selector});
      moving_.push_back({phase.when, phase.mask & ~tile, phase.want & ~tile, factor, 1.0 / factor,
                         static_cast<std::size_t>(it - monomials_.begin())});
      if (inner.low != 0) layers_[static_cast<std::size_t>(layer)].moving = true;
      low_moves_ = low_moves_ || (inner.low != 0 && inner.row == 0);
      rows_move_ = rows_move_ || inner.low == 0;
    } else if (inner.low != 0) {
      fixed[static_cast<std::size_t>(layer)].emplace_back(inner, factor);
    } else {
      for (std::size_t r = 0; r < row_factors_.size(); ++r) {
        if (holds(inner.when, inner.row, inner.row_want, r)) row_factors_[r] = times(row_factors_[r], factor);
      }
    }
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) fill_layer(l, fixed[l], shape);
}

template <typename T>
void DiagonalRun<T>::fill_layer(std::size_t which, std::span<const std::pair<Inner, Number>> fixed,
                                const TileShape& shape) {
  Layer& layer = layers_[which];
  layer.choice.assign(shape.rows(), 0);
  for (std::size_t r = 0; r < shape.rows(); ++r) {
    for (std::size_t s = 0; s < layer.selectors.size(); ++s) {
      const Inner& condition = layer.selectors[s];
      if (holds(condition.when, condition.row, condition.row_want, r)) {
        layer.choice[r] = static_cast<std::uint8_t>(layer.choice[r] | 1U << s);
      }
    }
  }
  const std::size_t size = std::size_t{1} << shape.row_bits;
  const std::size_t lanes = std::size_t{1} << shape.lane_bits;
  const std::size_t count = std::size_t{1} << layer.selectors.size();
  layer.tables.assign(count * 2 * size, T(0));
  layer.all_one.assign(count, true);
  std::vector<Number> common(size, 1.0);
  for (const auto& [inner, factor] : fixed) {
    if (inner.row != 0) continue;
    for (std::size_t l = 0; l < size; ++l) {
      if (holds(inner.when, inner.low, inner.low_want, l)) common[l] = times(common[l], factor);
    }
  }
  std::vector<Number> table;
  for (std::size_t c = 0; c < count; ++c) {
    table = common;
    for (const auto& [inner, factor] : fixed) {
      if (inner.row == 0) continue;
      const bool selected = (c >> selector_of(inner).second & 1) != 0;
      if (inner.when == Phase::When::all_of && !selected) continue;
      const bool flipped = inner.when == Phase::When::odd && selected;
      for (std::size_t l = 0; l < size; ++l) {
        if (holds(inner.when, inner.low, inner.low_want, l) != flipped) table[l] = times(table[l], factor);
      }
    }
    T* const out = layer.tables.data() + c * 2 * size;
    for (std::size_t l = 0; l < size; ++l) {
      const std::size_t at = l / lanes * 2 * lanes + l % lanes;
      out[at] = static_cast<T>(table[l].real());
      out[at + lanes] = static_cast<T>(table[l].imag());
      if (table[l] != 1.0) layer.all_one[c] = false;
    }
  }
}

template <typename T>
void DiagonalRun<T>::factors_of_tile(std::uint64_t base, const TileShape& shape, Scratch& scratch) const {
  auto& monomials = scratch.monomials;
  monomials.assign(monomials_.size(), 1.0);
  Number whole = 1;
  for (const Moving& moving : moving_) {
    if (moving.when == Phase::When::all_of) {
      if ((base & moving.mask) == moving.want) {
        monomials[moving.monomial] = times(monomials[moving.monomial], moving.factor);
      }
    } else if (std::popcount(base & moving.mask) % 2 == 0) {
      monomials[moving.monomial] = times(monomials[moving.monomial], moving.factor);
    } else {
      monomials[moving.monomial] = times(monomials[moving.monomial], moving.inverse);
      whole = times(whole, moving.factor);
    }
  }
  // Fills `out` for all values of the bits: the monomials in a single bit by doubling, then the others.
  const auto product_of = [&](std::vector<Number>& out, int bits, bool rows) {
    Number singles[64];
    std::fill_n(singles, bits, Number(1));
    out.assign(std::size_t{1} << bits, 1.0);
    out[0] = rows ? whole : 1.0;
    const auto belongs = [&](const Inner& inner) { return rows ? inner.low == 0 : inner.row == 0 && inner.low != 0; };
    for (std::size_t m = 0; m < monomials_.size(); ++m) {
      const Inner& inner = monomials_[m].inner;
      const std::uint64_t mask = rows ? inner.row : inner.low;
      if (!belongs(inner)) continue;
      if (inner.when == Phase::When::all_of && mask == 0) out[0] = times(out[0], monomials[m]);
      if (inner.when == Phase::When::all_of && single_bit(mask, rows ? inner.row_want : inner.low_want)) {
        Number& single = singles[std::countr_zero(mask)];
        single = times(single, monomials[m]);
      }
    }
    for (int b = 0; b < bits; ++b) {
      const std::size_t half = std::size_t{1} << b;
      for (std::size_t i = 0; i < half; ++i) out[half + i] = times(out[i], singles[b]);
    }
    for (std::size_t m = 0; m < monomials_.size(); ++m) {
      const Inner& inner = monomials_[m].inner;
      const std::uint64_t mask = rows ? inner.row : inner.low;
      const std::uint64_t want = rows ? inner.row_want : inner.low_want;
      if (!belongs(inner) || mask == 0 || (inner.when == Phase::When::all_of && single_bit(mask, want))) continue;
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (holds(inner.when, mask, want, i)) out[i] = times(out[i], monomials[m]);
      }
    }
  };
  if (rows_move_ || whole != 1.0) {
    product_of(scratch.row_factors, shape.bits - shape.row_bits, true);
    for (std::size_t r = 0; r < row_factors_.size(); ++r) {
      scratch.row_factors[r] = times(scratch.row_factors[r], row_factors_[r]);
    }
  } else {
    scratch.row_factors = row_factors_;
  }
  if (low_moves_) product_of(scratch.low_factors, shape.row_bits, false);
}

template <typename T>
void DiagonalRun<T>::tables_of_tile(std::size_t number, const TileShape& shape, Scratch& scratch) const {
  const std::size_t size = std::size_t{1} << shape.row_bits;
  const std::size_t lanes = std::size_t{1} << shape.lane_bits;
  const std::size_t count = layers_[number].all_one.size();
  auto& tables = scratch.tables[number];
  tables = layers_[number].tables;
  if (number == 0 && low_moves_) {
    for (std::size_t c = 0; c < count; ++c) {
      T* const table = tables.data() + c * 2 * size;
      for (std::size_t l = 0; l < size; ++l) {
        T* const at = table + l / lanes * 2 * lanes + l % lanes;
        const Number value = times({at[0], at[lanes]}, scratch.low_factors[l]);
        at[0] = static_cast<T>(value.real());
        at[lanes] = static_cast<T>(value.imag());
      }
    }
  }
  for (std::size_t m = 0; m < monomials_.size(); ++m) {
    const auto& [inner, its_layer, selector] = monomials_[m];
    const Number factor = scratch.monomials[m];
    if (selector < 0 || static_cast<std::size_t>(its_layer) != number || factor == 1.0) continue;
    for (std::size_t c = 0; c < count; ++c) {
      const bool selected = (c >> selector & 1) != 0;
      if (inner.when == Phase::When::all_of && !selected) continue;
      const bool flipped = inner.when == Phase::When::odd && selected;
      T* const table = tables.data() + c * 2 * size;
      for (std::size_t l = 0; l < size; ++l) {
        if (holds(inner.when, inner.low, inner.low_want, l) == flipped) continue;
        T* const at = table + l / lanes * 2 * lanes + l % lanes;
        const Number value = times({at[0], at[lanes]}, factor);
        at[0] = static_cast<T>(value.real());
        at[lanes] = static_cast<T>(value.imag());
      }
    }
  }
}

template <typename T>
void DiagonalRun<T>::begin_tile(std::uint64_t base, const TileShape& shape, Scratch& scratch) const {
  if (moving_.empty()) return;
  factors_of_tile(base, shape, scratch);
  scratch.tables.resize(layers_.size());
  for (std::size_t number = 0; number < layers_.size(); ++number) {
    if (layers_[number].moving) tables_of_tile(number, shape, scratch);
  }
}

template <typename T>
void DiagonalRun<T>::apply(T* rows, std::size_t first, std::size_t count, const TileShape& shape,
                           const Kernels<T>& kernels, const Scratch& scratch) const {
  const std::vector<Number>& factors = moving_.empty() ? row_factors_ : scratch.row_factors;
  const std::size_t numbers = std::size_t{2} << shape.row_bits;
  const std::size_t vectors = std::size_t{1} << (shape.row_bits - shape.lane_bits);
  for (std::size_t number = 0; number < layers_.size(); ++number) {
    const Layer& layer = layers_[number];
    const T* const tables = layer.moving ? scratch.tables[number].data() : layer.tables.data();
    for (std::size_t r = 0; r < count; ++r) {
      const std::complex<T> factor = number == 0 ? std::complex<T>(factors[first + r]) : std::complex<T>(1);
      const std::uint8_t choice = layer.choice[first + r];
      T* const row = rows + r * shape.row_stride();
      if (!layer.moving && layer.all_one[choice]) {
        if (factor != std::complex<T>(1)) kernels.scale(row, factor, vectors);
      } else {
        kernels.multiply(row, tables + choice * numbers, factor, vectors);
      }
    }
  }
}

template class DiagonalRun<float>;
template class DiagonalRun<double>;

}  // namespace onehop::quantum
