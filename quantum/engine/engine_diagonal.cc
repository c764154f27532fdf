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
  groups_.clear();
  monomials_.clear();
  moving_.clear();
  for (std::size_t i = 0; i < phases_.size();) {
    const Phase& phase = phases_[i];
    Group group{.begin = i, .end = i, .inner = inner_of(phase, tile, shape)};
    for (; i < phases_.size() && phases_[i].when == phase.when && phases_[i].mask == phase.mask &&
           phases_[i].want == phase.want;
         ++i) {
      group.end = i + 1;
    }
    const Inner& inner = group.inner;
    if (inner.low != 0 && inner.row != 0) std::tie(group.layer, group.selector) = selector_of(inner);
    if ((phase.mask & ~tile) != 0) {
      auto it = std::find_if(monomials_.begin(), monomials_.end(), [&](const Monomial& m) { return m.inner == inner; });
      if (it == monomials_.end()) it = monomials_.insert(it, {inner, group.layer, group.selector});
      group.moving = static_cast<int>(moving_.size());
      moving_.push_back({phase.when, phase.mask & ~tile, phase.want & ~tile, 1, 1,
                         static_cast<std::size_t>(it - monomials_.begin())});
      if (inner.low != 0) layers_[static_cast<std::size_t>(group.layer)].moving = true;
      low_moves_ = low_moves_ || (inner.low != 0 && inner.row == 0);
      rows_move_ = rows_move_ || inner.low == 0;
    }
    groups_.push_back(group);
  }
  for (Layer& layer : layers_) {
    layer.choice.assign(shape.rows(), 0);
    for (std::size_t r = 0; r < shape.rows(); ++r) {
      for (std::size_t s = 0; s < layer.selectors.size(); ++s) {
        const Inner& condition = layer.selectors[s];
        if (holds(condition.when, condition.row, condition.row_want, r)) {
          layer.choice[r] = static_cast<std::uint8_t>(layer.choice[r] | 1U << s);
        }
      }
    }
  }
  fill(shape);
}

template <typename T>
void DiagonalRun<T>::refill(const Items& items, double scale, const TileShape& shape) {
  scale_ = scale;
  for (Phase& phase : phases_) {
    if (phase.source >= 0) phase.factor = items.phases[static_cast<std::size_t>(phase.source)].factor;
  }
  fill(shape);
}

// out[i] for all values i of some bits: `first` times the factors whose conditions hold. Conditions on a single bit
// take one product for each entry, whatever their number.
template <typename T>
void DiagonalRun<T>::fill_products(std::vector<Number>& out, int bits, Number first, std::span<const Factor> factors) {
  Number singles[64];
  std::fill_n(singles, bits, Number(1));
  const auto is_single = [](const Factor& one) {
    return one.when == Phase::When::all_of && single_bit(one.mask, one.want);
  };
  for (const Factor& one : factors) {
    if (one.when == Phase::When::all_of && one.mask == 0) first = times(first, one.factor);
    if (!is_single(one)) continue;
    Number& single = singles[std::countr_zero(one.mask)];
    single = times(single, one.factor);
  }
  out.resize(std::size_t{1} << bits);
  out[0] = first;
  for (int b = 0; b < bits; ++b) {
    const std::size_t half = std::size_t{1} << b;
    if (singles[b] == 1.0) {
      std::copy_n(out.begin(), half, out.begin() + static_cast<std::ptrdiff_t>(half));
      continue;
    }
    for (std::size_t i = 0; i < half; ++i) out[half + i] = times(out[i], singles[b]);
  }
  for (const Factor& one : factors) {
    if (one.mask == 0 || is_single(one)) continue;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (holds(one.when, one.mask, one.want, i)) out[i] = times(out[i], one.factor);
    }
  }
}

// Everything that depends on the factors of the phases.
template <typename T>
void DiagonalRun<T>::fill(const TileShape& shape) {
  // Kept, because small states are refilled every few microseconds.
  static thread_local std::vector<Number> factors;
  static thread_local std::vector<Factor> of_rows;
  factors.clear();
  of_rows.clear();
  for (const Group& group : groups_) {
    Number factor = 1;
    for (std::size_t i = group.begin; i < group.end; ++i) factor = times(factor, phases_[i].factor);
    factors.push_back(factor);
    if (group.moving >= 0) {
      Moving& moving = moving_[static_cast<std::size_t>(group.moving)];
      moving.factor = factor;
      moving.inverse = 1.0 / factor;
    } else if (group.inner.low == 0) {
      of_rows.push_back({group.inner.when, group.inner.row, group.inner.row_want, factor});
    }
  }
  fill_products(row_factors_, shape.bits - shape.row_bits, scale_, of_rows);
  for (std::size_t l = 0; l < layers_.size(); ++l) fill_layer(l, factors, shape);
}

// `factors`: of each group.
template <typename T>
void DiagonalRun<T>::fill_layer(std::size_t which, std::span<const Number> factors, const TileShape& shape) {
  Layer& layer = layers_[which];
  static thread_local std::vector<Factor> of_low;
  static thread_local std::vector<std::size_t> selected;  // groups
  static thread_local std::vector<Number> common;
  static thread_local std::vector<Number> table;
  of_low.clear();
  selected.clear();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    if (group.moving >= 0 || group.inner.low == 0 || static_cast<std::size_t>(group.layer) != which) continue;
    if (group.inner.row == 0) {
      of_low.push_back({group.inner.when, group.inner.low, group.inner.low_want, factors[g]});
    } else {
      selected.push_back(g);
    }
  }
  const std::size_t size = std::size_t{1} << shape.row_bits;
  const std::size_t lanes = std::size_t{1} << shape.lane_bits;
  const std::size_t count = std::size_t{1} << layer.selectors.size();
  layer.tables.resize(count * 2 * size);
  layer.all_one.assign(count, true);
  fill_products(common, shape.row_bits, 1, of_low);
  for (std::size_t c = 0; c < count; ++c) {
    table = common;
    for (const std::size_t g : selected) {
      const Inner& inner = groups_[g].inner;
      const bool holds_row = (c >> groups_[g].selector & 1) != 0;
      if (inner.when == Phase::When::all_of && !holds_row) continue;
      const bool flipped = inner.when == Phase::When::odd && holds_row;
      for (std::size_t l = 0; l < size; ++l) {
        if (holds(inner.when, inner.low, inner.low_want, l) != flipped) table[l] = times(table[l], factors[g]);
      }
    }
    T* const out = layer.tables.data() + c * 2 * size;
    bool all_one = true;
    for (std::size_t l = 0; l < size; ++l) {
      const std::size_t at = l / lanes * 2 * lanes + l % lanes;
      out[at] = static_cast<T>(table[l].real());
      out[at + lanes] = static_cast<T>(table[l].imag());
      all_one = all_one && table[l] == 1.0;
    }
    layer.all_one[c] = all_one;
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
  const auto product_of = [&](std::vector<Number>& out, int bits, bool rows) {
    scratch.factors.clear();
    for (std::size_t m = 0; m < monomials_.size(); ++m) {
      const Inner& inner = monomials_[m].inner;
      if (rows && inner.low == 0) {
        scratch.factors.push_back({inner.when, inner.row, inner.row_want, monomials[m]});
      } else if (!rows && inner.row == 0 && inner.low != 0) {
        scratch.factors.push_back({inner.when, inner.low, inner.low_want, monomials[m]});
      }
    }
    fill_products(out, bits, rows ? whole : 1.0, scratch.factors);
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
  const auto multiply = [&](std::size_t c, std::size_t l, Number factor) {
    T* const at = tables.data() + c * 2 * size + l / lanes * 2 * lanes + l % lanes;
    const Number value = times({at[0], at[lanes]}, factor);
    at[0] = static_cast<T>(value.real());
    at[lanes] = static_cast<T>(value.imag());
  };
  if (number == 0 && low_moves_) {
    for (std::size_t c = 0; c < count; ++c) {
      for (std::size_t l = 0; l < size; ++l) multiply(c, l, scratch.low_factors[l]);
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
      for (std::size_t l = 0; l < size; ++l) {
        if (holds(inner.when, inner.low, inner.low_want, l) != flipped) multiply(c, l, factor);
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
double DiagonalRun<T>::apply_to_row(const Rows& rows, std::size_t at, const T* table, std::complex<T> factor,
                                    std::size_t vectors, const Kernels<T>& kernels) {
  T* const ket = rows.ket + at;
  if (rows.bra == nullptr) {
    if (table != nullptr) {
      kernels.multiply(ket, table, factor, vectors);
    } else if (factor != std::complex<T>(1)) {
      kernels.scale(ket, factor, vectors);
    }
    return 0;
  }
  T* const bra = rows.bra + at;
  if (table != nullptr && rows.columns != nullptr) {
    return kernels.probe_and_multiply(ket, bra, table, factor, vectors, rows.columns);
  }
  const double sum = rows.columns != nullptr ? kernels.probe_row(ket, bra, vectors, rows.columns) : 0;
  if (table != nullptr) {
    kernels.multiply_both(ket, bra, table, factor, vectors);
  } else if (factor != std::complex<T>(1)) {
    kernels.scale(ket, factor, vectors);
    kernels.scale(bra, factor, vectors);
  }
  return sum;
}

template <typename T>
void DiagonalRun<T>::apply(const Rows& rows, const TileShape& shape, const Kernels<T>& kernels,
                           const Scratch& scratch) const {
  const std::vector<Number>& factors = moving_.empty() ? row_factors_ : scratch.row_factors;
  const std::size_t numbers = std::size_t{2} << shape.row_bits;
  const std::size_t vectors = std::size_t{1} << (shape.row_bits - shape.lane_bits);
  Rows once = rows;  // products only with the first layer
  for (std::size_t number = 0; number < layers_.size(); ++number, once.columns = nullptr) {
    const Layer& layer = layers_[number];
    const T* const tables = layer.moving ? scratch.tables[number].data() : layer.tables.data();
    for (std::size_t r = 0; r < rows.count; ++r) {
      const std::complex<T> factor = number == 0 ? std::complex<T>(factors[rows.first + r]) : std::complex<T>(1);
      const std::uint8_t choice = layer.choice[rows.first + r];
      const T* const table = layer.moving || !layer.all_one[choice] ? tables + choice * numbers : nullptr;
      const double sum = apply_to_row(once, r * shape.row_stride(), table, factor, vectors, kernels);
      if (once.columns != nullptr) rows.sums[r] = sum;
    }
  }
}

template class DiagonalRun<float>;
template class DiagonalRun<double>;

}  // namespace onehop::quantum
