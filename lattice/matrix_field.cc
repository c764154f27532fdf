#include "matrix_field.h"

#include <string>

namespace onehop::lattice::detail {

MatrixSpace::MatrixSpace(const Group& group, const Geometry& geometry)
    : group_(group),
      geometry_(geometry),
      number_step_(geometry.block()[0] + 2),
      team_(std::make_unique<Team>(team_size(group))) {
  const auto block = geometry.block();
  stride_[0] = 1;
  std::ptrdiff_t next = 18 * number_step_;
  for (std::size_t d = 1; d < block.size(); ++d) {
    stride_[d] = next;
    next *= block[d] + 2;
  }
  doubles_ = static_cast<std::size_t>(next);
  std::ptrdiff_t first = 0;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < block.size(); ++d) first += stride_[d];
  for (std::size_t d = 1; d < block.size(); ++d) count *= block[d];
  for (std::int64_t row = 0; row < count; ++row) {
    std::ptrdiff_t at = first;
    std::int64_t rest = row;
    for (std::size_t d = 1; d < block.size(); ++d) {
      at += stride_[d] * (rest % block[d]);
      rest /= block[d];
    }
    rows_.push_back(at);
  }
}

Schedule MatrixSpace::ghosts(int direction, Side side) const {
  const auto block = geometry_.block();
  const auto along = static_cast<std::size_t>(direction);
  std::vector<std::int64_t> shape;  // the last direction first
  std::vector<std::int64_t> start;
  std::vector<std::int64_t> extents;
  for (std::size_t d = block.size(); d-- > 0;) {
    const bool below = d < along;
    shape.push_back(block[d] + 2);
    start.push_back(below ? 0 : 1);
    extents.push_back(below ? block[d] + 2 : d == along ? 1 : block[d]);
  }
  shape.insert(shape.end() - 1, 18);
  start.insert(start.end() - 1, 0);
  extents.insert(extents.end() - 1, 18);
  const std::size_t axis = direction == 0 ? shape.size() - 1 : block.size() - 1 - along;
  const auto slice = [&](std::int64_t layer) {
    std::vector<std::int64_t> begin = start;
    begin[axis] = layer;
    return Slice::subarray(shape, begin, extents);
  };
  const bool above = side == Side::above;
  const Slice source = slice(above ? 1 : block[along]);
  const Slice ghost = slice(above ? block[along] + 1 : 0);

  Schedule schedule;
  schedule.name = "ghosts of a field of matrices";
  schedule.ranks = geometry_.ranks();
  schedule.arrays = {{"field", sizeof(double), ElementType::float64, {static_cast<std::int64_t>(doubles_)}}};
  schedule.rounds.resize(1);
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    std::vector<int> to = geometry_.coordinates(rank);
    to[along] += above ? -1 : 1;
    schedule.rounds[0].transfers.push_back({{rank, 0, source}, {geometry_.rank_at(to), 0, ghost}});
  }
  return schedule;
}

void MatrixField::fill(int direction, Side side) {
  std::optional<Plan>& plan = ghosts_[static_cast<std::size_t>(direction)][side == Side::above ? 1 : 0];
  if (!plan) {
    const std::array arrays{std::as_writable_bytes(numbers_.span())};
    plan.emplace(space_->group(), space_->ghosts(direction, side).part(space_->group().rank()), arrays);
  }
  plan->run();
}

void MatrixField::load(const std::complex<double>* from, std::size_t step) {
  for (const std::ptrdiff_t row : space_->rows()) {
    for (std::ptrdiff_t x = 0; x < space_->row_sites(); ++x, from += step) {
      double* to = numbers_.data() + row + x;
      for (std::ptrdiff_t i = 0; i < 9; ++i) {
        to[2 * i * space_->number_step()] = from[i].real();
        to[(2 * i + 1) * space_->number_step()] = from[i].imag();
      }
    }
  }
}

void MatrixField::store(std::complex<double>* to, std::size_t step) const {
  for (const std::ptrdiff_t row : space_->rows()) {
    for (std::ptrdiff_t x = 0; x < space_->row_sites(); ++x, to += step) {
      const double* from = numbers_.data() + row + x;
      for (std::ptrdiff_t i = 0; i < 9; ++i)
        to[i] = {from[2 * i * space_->number_step()], from[(2 * i + 1) * space_->number_step()]};
    }
  }
}

}  // namespace onehop::lattice::detail
