#include "matrix_field.h"

#include <cstring>
#include <optional>

#include "onehop/plan.h"

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

MatrixSpace::~MatrixSpace() = default;

// A layer across a direction is runs of numbers: in direction 0 one number each, in others all that lies below, ghosts in lower directions
// too, so that ghosts filled in the order of directions are right at edges and corners. each(where layer 0 has a run) goes through them.
template <class Each>
void MatrixSpace::each_run(int direction, const Each& each) const {
  if (direction == 0) {
    for (const std::ptrdiff_t row : rows_) {
      for (int i = 0; i < 18; ++i) each(row - 1 + i * number_step_);
    }
    return;
  }
  const auto block = geometry_.block();
  const auto first = static_cast<std::size_t>(direction) + 1;
  std::int64_t runs = 1;
  for (std::size_t d = first; d < block.size(); ++d) runs *= block[d];
  for (std::int64_t run = 0; run < runs; ++run) {
    std::ptrdiff_t at = 0;
    auto rest = run;
    for (std::size_t d = first; d < block.size(); ++d) {
      at += stride_[d] * (1 + rest % block[d]);
      rest /= block[d];
    }
    each(at);
  }
}

// What travels between two ranks when ghosts are filled: a layer, contiguous, with one plan for all fields.
struct MatrixSpace::Layer {
  Layer(const MatrixSpace& space, int direction, Side side, std::size_t count) : out(count), in(count) {
    const auto numbers = static_cast<std::int64_t>(count);
    Schedule schedule;
    schedule.name = "ghosts of fields of matrices";
    schedule.ranks = space.geometry().ranks();
    schedule.arrays = {{"out", sizeof(double), ElementType::float64, {numbers}},
                       {"in", sizeof(double), ElementType::float64, {numbers}}};
    schedule.rounds.resize(1);
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      std::vector<int> to = space.geometry().coordinates(rank);
      to[static_cast<std::size_t>(direction)] += side == Side::above ? -1 : 1;
      schedule.rounds[0].transfers.push_back(
          {{rank, 0, Slice::range(0, numbers)}, {space.geometry().rank_at(to), 1, Slice::range(0, numbers)}});
    }
    const std::array arrays{std::as_writable_bytes(out.span()), std::as_writable_bytes(in.span())};
    plan.emplace(space.group(), schedule.part(space.group().rank()), arrays);
  }

  Buffer<double> out;
  Buffer<double> in;
  std::optional<Plan> plan;
};

void MatrixSpace::fill(double* field, int direction, Side side) const {
  const auto along = static_cast<std::size_t>(direction);
  const std::ptrdiff_t step = stride_[along];
  const std::ptrdiff_t extent = geometry_.block()[along];
  const std::ptrdiff_t from = step * (side == Side::above ? 1 : extent);
  const std::ptrdiff_t to = step * (side == Side::above ? extent + 1 : 0);
  const auto length = static_cast<std::size_t>(step);  // of a run: 1 in direction 0
  const auto copy = [length](double* into, const double* what) { std::memcpy(into, what, length * sizeof(double)); };
  if (geometry_.spec().grid[along] == 1)
    return each_run(direction, [&](std::ptrdiff_t at) { copy(field + at + to, field + at + from); });

  std::size_t count = 0;
  each_run(direction, [&](std::ptrdiff_t) { count += length; });
  auto& layer = layers_[along][side == Side::above ? 1 : 0];
  if (!layer) layer = std::make_unique<Layer>(*this, direction, side, count);
  double* out = layer->out.data();
  each_run(direction, [&](std::ptrdiff_t at) {
    copy(out, field + at + from);
    out += length;
  });
  layer->plan->run();
  const double* in = layer->in.data();
  each_run(direction, [&](std::ptrdiff_t at) {
    copy(field + at + to, in);
    in += length;
  });
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
