// Runs tile programs. engine_tile_build.cc builds them.
#include "quantum/engine/engine_tile.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "src/base/clock.h"

namespace onehop::quantum {
namespace {

// From this size on, no cache holds a state until its next pass.
constexpr std::size_t least_bytes_past_caches = std::size_t{1} << 26;

template <typename Body>
void timed(std::array<double, pass_parts>* parts, PassPart part, const Body& body) {
  if (parts == nullptr) return body();
  const double begin = base::steady_seconds();
  body();
  (*parts)[static_cast<std::size_t>(part)] += base::steady_seconds() - begin;
}

}  // namespace

template <typename T>
bool TileProgram<T>::past_caches() const {
  return (sizeof(std::complex<T>) << bits_) >= least_bytes_past_caches;
}

template <typename T>
std::uint32_t TileProgram<T>::flip_of(const Permutation& permutation, std::uint64_t base) {
  std::uint32_t flip = permutation.flip;
  for (const auto& conditional : permutation.conditional) {
    if ((base & conditional.mask) == conditional.value) flip ^= conditional.flip;
  }
  return flip;
}

template <typename T>
void TileProgram<T>::run_table(const Table& table, std::uint64_t base, std::size_t part, T* tile) const {
  const LocalOperation& op = *table.operation;
  const std::size_t lanes = std::size_t{1} << shape_.lane_bits;
  const std::size_t rows = rows_of_part();
  for (std::size_t r = part * rows; r < (part + 1) * rows; ++r) {
    T* const row = tile + r * shape_.row_stride();
    for (std::size_t l = 0; l < std::size_t{1} << shape_.row_bits; ++l) {
      const std::uint64_t i = base | offsets_[r] | l;
      if ((i & op.control_mask) != op.control_values) continue;
      std::size_t value = 0;
      for (std::size_t b = 0; b < op.bits.size(); ++b) value |= (i >> op.bits[b] & 1) << b;
      T& re = row[l / lanes * 2 * lanes + l % lanes];
      T& im = row[l / lanes * 2 * lanes + l % lanes + lanes];
      const std::complex<T> factor = table.values[value];
      const std::complex<T> old(re, im);
      re = factor.real() * old.real() - factor.imag() * old.imag();
      im = factor.real() * old.imag() + factor.imag() * old.real();
    }
  }
}

template <typename T>
void TileProgram<T>::run_step(const Step& step, std::uint64_t base, std::size_t part, const TileShape& shape,
                              T* data) const {
  const auto holds = [&](const Outside& outside) { return (base & outside.controls) == outside.control_values; };
  switch (step.kind) {
    case StepKind::butterflies: {
      const Butterflies& b = butterflies_[step.index];
      kernels_.butterflies(data, shape, b.bits, b.tangents, b.count);
      break;
    }
    case StepKind::lane_butterflies:
      kernels_.lane_butterflies(data, shape, butterflies_[step.index].tangents, butterflies_[step.index].signs);
      break;
    case StepKind::pair: {
      const Pair& pair = pairs_[step.index];
      if (holds(pair.outside)) {
        kernels_.pair(data, shape, pair.step, std::popcount(base & pair.outside.sign) % 2 != 0);
      }
      break;
    }
    case StepKind::two_pairs:
      kernels_.two_pairs(data, shape, two_pairs_[step.index]);
      break;
    case StepKind::dense:
      if (holds(dense_[step.index].outside)) kernels_.dense(data, shape, dense_[step.index].step);
      break;
    case StepKind::lane_matrix:
      if (holds(lane_matrices_[step.index].outside)) {
        kernels_.lane_matrix(data, shape, lane_matrices_[step.index].step);
      }
      break;
    case StepKind::table:
      run_table(tables_[step.index], base, part, data);
      break;
    default:
      break;  // see run_stretch
  }
}

template <typename T>
void TileProgram<T>::run_diagonal(const Step& step, std::uint64_t base, std::size_t first_row, const TileShape& shape,
                                  T* data, T* bra, Scratch& scratch) const {
  typename DiagonalRun<T>::Rows rows{.first = first_row, .count = shape.rows(), .ket = data, .bra = bra};
  const bool probes = bra != nullptr && step.probes >= 0;
  if (probes) {
    rows.columns = scratch.columns.data() + diagonal_probes_[static_cast<std::size_t>(step.probes)].columns;
    rows.sums = scratch.rows.data();
  }
  diagonals_[step.index].apply(rows, shape, kernels_, scratch.diagonals[step.index]);
  if (probes) {
    add_row_sums(diagonal_probes_[static_cast<std::size_t>(step.probes)], base, first_row, shape.rows(), scratch);
  }
}

template <typename T>
PassPart TileProgram<T>::part_of(StepKind kind) {
  switch (kind) {
    case StepKind::butterflies:
    case StepKind::lane_butterflies:
    case StepKind::probed_butterflies:
    case StepKind::probed_lane_butterflies:
      return PassPart::rotations;
    case StepKind::pair:
    case StepKind::two_pairs:
      return PassPart::pairs;
    case StepKind::dense:
    case StepKind::lane_matrix:
      return PassPart::matrices;
    case StepKind::permute:
      return PassPart::pairs;
    default:
      return PassPart::diagonals;
  }
}

template <typename T>
void TileProgram<T>::describe(PassSummary& summary) const {
  for (const Step& step : steps_) {
    int sweeps = 1;
    double each = 0;  // multiply-adds per amplitude
    switch (step.kind) {
      case StepKind::butterflies:
      case StepKind::lane_butterflies:
        each = 2 * butterflies_[step.index].count;
        break;
      case StepKind::pair:
        each = 4 * std::ldexp(1.0, -std::popcount(pairs_[step.index].step.controls));
        break;
      case StepKind::two_pairs:
        each = 8;
        break;
      case StepKind::lane_matrix:
        each = 16;
        break;
      case StepKind::dense:
        each = dense_[step.index].step.tangents[0] != 0
                   ? 8
                   : 4 * std::ldexp(1.0, static_cast<int>(dense_[step.index].step.bits.size()) -
                                             std::popcount(dense_[step.index].step.controls));
        break;
      case StepKind::permute:
        break;
      case StepKind::diagonal:
        sweeps = diagonals_[step.index].layers(tile_, shape_);
        each = 4 * (sweeps + 1);  // including the factor of the row
        break;
      case StepKind::table:
        each = 4;
        break;
      case StepKind::probed_butterflies:
      case StepKind::probed_lane_butterflies:
        each = 2 * butterflies_[probed_butterflies_[step.index].butterflies].count;
        break;
      default:
        break;  // probes
    }
    each += multiply_adds_of_probe(step);
    summary.sweeps += sweeps;
    summary.multiply_adds += each;
  }
}

// Per amplitude of one state.
template <typename T>
double TileProgram<T>::multiply_adds_of_probe(const Step& step) const {
  switch (step.kind) {
    case StepKind::diagonal:
      return step.probes >= 0 ? 3 : 0;
    case StepKind::diagonal_probes:
      return 3;
    case StepKind::pair_probe:
      return 2;
    case StepKind::vector_probes:
    case StepKind::lane_probes:
      return 2 * bit_probes_[step.index].count;
    case StepKind::probed_butterflies:
    case StepKind::probed_lane_butterflies:
      return 2 * bit_probes_[probed_butterflies_[step.index].probes].count;
    default:
      return 0;
  }
}

template <typename T>
void TileProgram<T>::count_multiply_adds() {
  PassSummary all;
  describe(all);
  double probes = 0;
  for (const Step& step : steps_) probes += multiply_adds_of_probe(step);
  multiply_adds_of_two_ = 2 * (all.multiply_adds - probes) + probes;
}

template <typename T>
void TileProgram<T>::permute(const Stretch& stretch, std::uint64_t base, std::size_t part, T*& tile, T*& other) const {
  const Permutation& permutation = permutations_[steps_[stretch.begin].index];
  if (has_part(stretch.split, part)) {
    const TileShape shape = shape_of_part(stretch.split, part);
    kernels_.permute(tile, other, shape, permutation.step, flip_of(permutation, base));
  }
  std::swap(tile, other);
}

template <typename T>
void TileProgram<T>::run_stretch(const Stretch& stretch, const States& states, std::uint64_t base, Scratch& scratch,
                                 bool gathers, bool scatters) const {
  const auto each_state = [&](const auto& body) {
    if (states.ket != nullptr || scratch.encoded != nullptr) body(states.ket, scratch.tile);
    if (states.bra != nullptr) body(states.bra, scratch.bra);
  };
  if (stretch.permutes) {
    return timed(scratch.parts, part_of(StepKind::permute), [&] {
      each_state([&](std::complex<T>*, T*& tile) { permute(stretch, base, scratch.part, tile, scratch.other); });
    });
  }
  if (!has_part(stretch.split, scratch.part)) return;
  for (std::size_t s = stretch.begin; s < stretch.end; ++s) {
    if (steps_[s].kind != StepKind::diagonal) continue;
    const std::size_t number = steps_[s].index;
    timed(scratch.parts, PassPart::diagonals,
          [&] { diagonals_[number].begin_tile(base, shape_, scratch.diagonals[number]); });
  }
  const TileShape shape = stretch.local ? block_ : shape_of_part(stretch.split, scratch.part);
  const std::size_t rows = stretch.local ? rows_of_part() : shape_.rows();
  const std::size_t first = stretch.local ? scratch.part * rows : 0;
  for (std::size_t row = first; row < first + rows; row += shape.rows()) {
    const std::size_t at = row * shape_.row_stride();
    if (gathers) {
      timed(scratch.parts, PassPart::gather, [&] {
        each_state([&](std::complex<T>* state, T* tile) {
          load(state, base, row, shape, tile + at, scratch.encoded, first + rows - row - shape.rows());
        });
      });
    }
    for (std::size_t s = stretch.begin; s < stretch.end; ++s) {
      const Step& step = steps_[s];
      timed(scratch.parts, part_of(step.kind), [&] {
        if (is_probe(step.kind)) {
          return run_probe(step, base, row, shape, scratch.tile + at, scratch.bra + at, scratch);
        }
        if (step.kind == StepKind::diagonal) {
          T* const other = states.bra == nullptr ? nullptr : scratch.bra + at;
          return run_diagonal(step, base, row, shape, scratch.tile + at, other, scratch);
        }
        each_state([&](std::complex<T>*, T* tile) { run_step(step, base, scratch.part, shape, tile + at); });
      });
    }
    if (scatters) {
      timed(scratch.parts, PassPart::scatter, [&] {
        each_state(
            [&](std::complex<T>* state, const T* tile) { store(state, base, row, shape, tile + at, scratch.encoded); });
      });
    }
  }
}

template <typename T>
void TileProgram<T>::load(const std::complex<T>* amplitudes, std::uint64_t base, std::size_t row,
                          const TileShape& shape, T* tile, EncodedRows* encoded, std::size_t following) const {
  if constexpr (std::is_same_v<T, float>) {
    if (encoded != nullptr) return encoded->load(kernels_, base, offsets_.data() + row, shape, tile);
  }
  kernels_.gather(amplitudes + base, offsets_.data() + row, shape, tile, following);
}

template <typename T>
void TileProgram<T>::store(std::complex<T>* amplitudes, std::uint64_t base, std::size_t row, const TileShape& shape,
                           const T* tile, EncodedRows* encoded) const {
  if constexpr (std::is_same_v<T, float>) {
    if (encoded != nullptr) return encoded->store(kernels_, base, offsets_.data() + row, shape, tile, last_scale_);
  }
  kernels_.scatter(amplitudes + base, offsets_.data() + row, shape, tile, last_scale_, past_caches());
}

template <typename T>
void TileProgram<T>::gather(const std::complex<T>* amplitudes, std::uint64_t base, const Scratch& scratch,
                            T* tile) const {
  TileShape shape = shape_;
  shape.bits -= std::countr_zero(parts_);
  const std::size_t row = scratch.part * shape.rows();
  load(amplitudes, base, row, shape, tile + row * shape.row_stride(), scratch.encoded, 0);
}

template <typename T>
void TileProgram<T>::scatter(std::complex<T>* amplitudes, std::uint64_t base, const Scratch& scratch,
                             const T* tile) const {
  if (!permutes_on_scatter_) {
    TileShape shape = shape_;
    shape.bits -= std::countr_zero(parts_);
    const std::size_t row = scratch.part * shape.rows();
    return store(amplitudes, base, row, shape, tile + row * shape.row_stride(), scratch.encoded);
  }
  const Permutation& permutation = permutations_.back();
  const std::size_t split = split_without(permutation.step.group_mask);
  if (!has_part(split, scratch.part)) return;
  const TileShape shape = shape_of_part(split, scratch.part);
  kernels_.scatter_permuted(amplitudes + base, offsets_.data(), shape, tile, permutation.step,
                            flip_of(permutation, base), last_scale_, past_caches());
}

template <typename T>
void TileProgram<T>::prepare_scratch(Scratch& scratch) const {
  scratch.diagonals.resize(diagonals_.size());
  scratch.columns.resize(diagonal_probes_.size() << shape_.row_bits);
  scratch.rows.resize(shape_.rows());
}

template <typename T>
void TileProgram<T>::run(std::complex<T>* ket, std::complex<T>* bra, std::size_t tile, std::span<Scratch> parts,
                         base::Barrier* barrier) const {
  const std::uint64_t all = (std::uint64_t{1} << bits_) - 1;
  const std::uint64_t base = deposit_bits(tile, ~tile_ & all);
  const std::size_t by_rows = split_without(0);
  std::size_t last = by_rows;
  // A part whose bits are those of the last step reads and writes only what its own thread has written.
  const auto meet = [&](std::size_t split, bool always) {
    if (barrier != nullptr && (always || split != last)) barrier->wait();
    last = split;
  };
  const auto each_part = [&](const auto& body) {
    for (Scratch& scratch : parts) body(scratch);
  };
  each_part([&](Scratch& scratch) { std::fill(scratch.columns.begin(), scratch.columns.end(), T(0)); });
  const bool gather_first = stretches_.empty() || !stretches_.front().local;
  const bool scatter_last = permutes_on_scatter_ || stretches_.empty() || !stretches_.back().local;
  if (gather_first) {
    each_part([&](Scratch& scratch) {
      timed(scratch.parts, PassPart::gather, [&] {
        gather(ket, base, scratch, scratch.tile);
        if (bra != nullptr) gather(bra, base, scratch, scratch.bra);
      });
    });
  }
  for (const Stretch& stretch : stretches_) {
    const bool gathers = !gather_first && &stretch == &stretches_.front();
    const bool scatters = !scatter_last && &stretch == &stretches_.back();
    meet(stretch.split, stretch.permutes);
    const bool in_turn = stretch.permutes && bra != nullptr;
    each_part([&](Scratch& scratch) {
      run_stretch(stretch, {ket, in_turn ? nullptr : bra}, base, scratch, gathers, scatters);
    });
    if (!in_turn) continue;
    // The bra goes to the tile that the ket came from.
    meet(stretch.split, true);
    each_part([&](Scratch& scratch) { run_stretch(stretch, {nullptr, bra}, base, scratch, gathers, scatters); });
  }
  each_part([&](Scratch& scratch) { finish_diagonal_probes(base, scratch); });
  if (!scatter_last) return;
  meet(by_rows, permutes_on_scatter_);
  each_part([&](Scratch& scratch) {
    timed(scratch.parts, PassPart::scatter, [&] {
      scatter(ket, base, scratch, scratch.tile);
      if (bra != nullptr) scatter(bra, base, scratch, scratch.bra);
    });
  });
}

template class TileProgram<float>;
template class TileProgram<double>;

}  // namespace onehop::quantum
