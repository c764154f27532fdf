#include "lattice/geometry/matrix_field.h"

#include <cstring>
#include <optional>

#include "lattice/geometry/memory_need.h"
#include "onehop/plan.h"
#include "src/base/thread_count.h"

namespace onehop::lattice::detail {

MatrixSpace::MatrixSpace(const Group& group, const Geometry& geometry)
    : group_(group), geometry_(geometry), number_step_(geometry.block()[0] + 2), pool_(base::thread_count(0, group)) {
  const auto block = geometry.block();
  stride_[0] = 1;
  std::ptrdiff_t next = 18 * number_step_;
  for (std::size_t d = 1; d < block.size(); ++d) {
    stride_[d] = next;
    next *= block[d] + 2;
  }
  numbers_ = static_cast<std::size_t>(next);
  std::ptrdiff_t first = 0;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < block.size(); ++d) first += stride_[d];
  for (std::size_t d = 1; d < block.size(); ++d) count *= block[d];
  for (std::int64_t row = 0; row < count; ++row) {
    std::ptrdiff_t at = first;
    std::int64_t remaining = row;
    for (std::size_t d = 1; d < block.size(); ++d) {
      at += stride_[d] * (remaining % block[d]);
      remaining /= block[d];
    }
    rows_.push_back(at);
  }
}

MatrixSpace::~MatrixSpace() = default;

// Calls each(offset) for the contiguous runs of layer 0 across a direction. In direction 0 a run is one number; in
// others it covers all lower directions with their ghosts, so that filling ghosts in the order of directions is correct
// at edges and corners.
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
    auto remaining = run;
    for (std::size_t d = first; d < block.size(); ++d) {
      at += stride_[d] * (1 + remaining % block[d]);
      remaining /= block[d];
    }
    each(at);
  }
}

template <class Number>
void MatrixSpace::require_memory(int fields, int copies_of_links, const std::string& what) const {
  const auto of_field = static_cast<double>(Buffer<Number>::bytes_taken(numbers_));
  const double of_links = static_cast<double>(sites()) * dims() * matrix_bytes;
  require_memory_for(group_, geometry_.spec().extents, fields * of_field + copies_of_links * of_links, what);
}

template void MatrixSpace::require_memory<double>(int, int, const std::string&) const;
template void MatrixSpace::require_memory<float>(int, int, const std::string&) const;

// The message buffers of a ghost layer and their plan, shared by all fields of one number type.
struct MatrixSpace::Layer {
  Layer(const MatrixSpace& space, int direction, Side side, std::size_t bytes) : out(bytes), in(bytes) {
    const auto count = static_cast<std::int64_t>(bytes);
    Schedule schedule;
    schedule.name = "ghosts of fields of matrices";
    schedule.ranks = space.geometry().ranks();
    schedule.arrays = {{"out", 1, ElementType::bytes, {count}}, {"in", 1, ElementType::bytes, {count}}};
    schedule.rounds.resize(1);
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      std::vector<int> to = space.geometry().coordinates(rank);
      to[static_cast<std::size_t>(direction)] += side == Side::above ? -1 : 1;
      schedule.rounds[0].transfers.push_back(
          {{rank, 0, Slice::range(0, count)}, {space.geometry().rank_at(to), 1, Slice::range(0, count)}});
    }
    const std::array arrays{out.span(), in.span()};
    plan.emplace(space.group(), schedule.part(space.group().rank()), arrays);
  }

  Buffer<std::byte> out;
  Buffer<std::byte> in;
  std::optional<Plan> plan;
};

template <class Number>
void MatrixSpace::fill(Number* field, int direction, Side side) const {
  const auto along = static_cast<std::size_t>(direction);
  const std::ptrdiff_t step = stride_[along];
  const std::ptrdiff_t extent = geometry_.block()[along];
  const std::ptrdiff_t from = step * (side == Side::above ? 1 : extent);
  const std::ptrdiff_t to = step * (side == Side::above ? extent + 1 : 0);
  const std::size_t run = static_cast<std::size_t>(step) * sizeof(Number);
  if (geometry_.spec().grid[along] == 1)
    return each_run(direction, [&](std::ptrdiff_t at) { std::memcpy(field + at + to, field + at + from, run); });

  auto& layer = layers_[along][side == Side::above ? 1 : 0][sizeof(Number) == sizeof(double) ? 0 : 1];
  if (!layer) {
    std::size_t bytes = 0;
    each_run(direction, [&](std::ptrdiff_t) { bytes += run; });
    layer = std::make_unique<Layer>(*this, direction, side, bytes);
  }
  std::byte* out = layer->out.data();
  each_run(direction, [&](std::ptrdiff_t at) {
    std::memcpy(out, field + at + from, run);
    out += run;
  });
  layer->plan->run();
  const std::byte* in = layer->in.data();
  each_run(direction, [&](std::ptrdiff_t at) {
    std::memcpy(field + at + to, in, run);
    in += run;
  });
}

template void MatrixSpace::fill(double*, int, Side) const;
template void MatrixSpace::fill(float*, int, Side) const;

template <class Number>
void MatrixFieldOf<Number>::load(const std::complex<double>* from, std::size_t step) {
  for (const std::ptrdiff_t row : space_->rows()) {
    for (std::ptrdiff_t x = 0; x < space_->row_sites(); ++x, from += step) {
      Number* to = numbers_.data() + row + x;
      for (std::ptrdiff_t i = 0; i < 9; ++i) {
        to[2 * i * space_->number_step()] = static_cast<Number>(from[i].real());
        to[(2 * i + 1) * space_->number_step()] = static_cast<Number>(from[i].imag());
      }
    }
  }
}

template <class Number>
void MatrixFieldOf<Number>::store(std::complex<double>* to, std::size_t step) const {
  for (const std::ptrdiff_t row : space_->rows()) {
    for (std::ptrdiff_t x = 0; x < space_->row_sites(); ++x, to += step) {
      const Number* from = numbers_.data() + row + x;
      for (std::ptrdiff_t i = 0; i < 9; ++i)
        to[i] = {from[2 * i * space_->number_step()], from[(2 * i + 1) * space_->number_step()]};
    }
  }
}

template class MatrixFieldOf<double>;
template class MatrixFieldOf<float>;

}  // namespace onehop::lattice::detail
