// Derivatives: products of two tiles with Pauli strings between them.
#include <bit>

#include "quantum/engine/engine_tile.h"

namespace onehop::quantum {
namespace {

// (-1)^parity(i & sign) where the controls hold, else 0.
double factor_of(std::size_t i, std::size_t sign, std::size_t controls, std::size_t control_values) {
  if ((i & controls) != control_values) return 0;
  return std::popcount(i & sign) % 2 != 0 ? -1 : 1;
}

}  // namespace

template <typename T>
void TileProgram<T>::probe_diagonals(const DiagonalProbes& probes, std::uint64_t base, std::size_t first_row,
                                     std::size_t rows, const T* ket, const T* bra, Scratch& scratch) const {
  const std::size_t vectors = std::size_t{1} << (shape_.row_bits - shape_.lane_bits);
  T* const columns = scratch.columns.data() + probes.columns;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t at = r * shape_.row_stride();
    const double sum = kernels_.probe_row(ket + at, bra + at, vectors, columns);
    for (const auto& one : probes.ones) {
      if (one.in_row) continue;
      const double outside = factor_of(base, one.outside.sign, one.outside.controls, one.outside.control_values);
      scratch.sums[one.to.sum] +=
          one.to.factor * outside * factor_of(first_row + r, one.sign, one.controls, one.control_values) * sum;
    }
  }
}

template <typename T>
void TileProgram<T>::finish_diagonal_probes(std::uint64_t base, Scratch& scratch) const {
  const std::size_t size = std::size_t{1} << shape_.row_bits;
  for (const DiagonalProbes& probes : diagonal_probes_) {
    const T* const columns = scratch.columns.data() + probes.columns;
    for (const auto& one : probes.ones) {
      if (!one.in_row) continue;
      const double outside = factor_of(base, one.outside.sign, one.outside.controls, one.outside.control_values);
      if (outside == 0) continue;
      double sum = 0;
      for (std::size_t c = 0; c < size; ++c) {
        sum += factor_of(c, one.sign, one.controls, one.control_values) * static_cast<double>(columns[c]);
      }
      scratch.sums[one.to.sum] += one.to.factor * outside * sum;
    }
  }
}

template <typename T>
void TileProgram<T>::run_probe(const Step& step, std::uint64_t base, std::size_t first_row, const TileShape& shape,
                               const T* ket, const T* bra, Scratch& scratch) const {
  const auto add = [&](const ProbeSum& to, double sum) { scratch.sums[to.sum] += to.factor * sum; };
  switch (step.kind) {
    case StepKind::diagonal_probes:
      return probe_diagonals(diagonal_probes_[step.index], base, first_row, shape.rows(), ket, bra, scratch);
    case StepKind::vector_probes:
    case StepKind::lane_probes: {
      const BitProbes& probes = bit_probes_[step.index];
      double out[4] = {};
      const bool lanes = step.kind == StepKind::lane_probes;
      if (lanes) {
        kernels_.probe_lanes(ket, bra, shape, out);
      } else {
        kernels_.probe_vectors(ket, bra, shape, probes.bits, probes.count, out);
      }
      for (int b = 0; b < probes.count; ++b) add(probes.to[b], out[lanes ? probes.bits[b] : b]);
      return;
    }
    default: {
      const PairProbe& probe = pair_probes_[step.index];
      const double outside = factor_of(base, probe.outside.sign, probe.outside.controls, probe.outside.control_values);
      if (outside == 0) return;
      double out[1 << max_lane_bits] = {};
      kernels_.probe_pairs(ket, bra, shape, probe.step, out);
      double sum = 0;
      for (std::size_t l = 0; l < probe.lanes.size(); ++l) sum += probe.lanes[l] * out[l];
      return add(probe.to, outside * sum);
    }
  }
}

template void TileProgram<float>::run_probe(const Step&, std::uint64_t, std::size_t, const TileShape&, const float*,
                                            const float*, Scratch&) const;
template void TileProgram<double>::run_probe(const Step&, std::uint64_t, std::size_t, const TileShape&, const double*,
                                             const double*, Scratch&) const;
template void TileProgram<float>::probe_diagonals(const DiagonalProbes&, std::uint64_t, std::size_t, std::size_t,
                                                  const float*, const float*, Scratch&) const;
template void TileProgram<double>::probe_diagonals(const DiagonalProbes&, std::uint64_t, std::size_t, std::size_t,
                                                   const double*, const double*, Scratch&) const;
template void TileProgram<float>::finish_diagonal_probes(std::uint64_t, Scratch&) const;
template void TileProgram<double>::finish_diagonal_probes(std::uint64_t, Scratch&) const;

}  // namespace onehop::quantum
