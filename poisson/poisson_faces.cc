#include "poisson/poisson_faces.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "src/base/text.h"

namespace onehop::poisson {

namespace {

constexpr std::int64_t line = 64;
constexpr std::int64_t line_elements = line / static_cast<std::int64_t>(sizeof(double));
constexpr std::int64_t max_elements = std::int64_t{1} << 48;

std::string text(std::int64_t number) { return std::to_string(number); }

int ranks_of(const PoissonSpec& spec) { return spec.grid[0] * spec.grid[1]; }

// The rank beside `rank`, one step down (-1) or up (+1) in a dimension.
int neighbour(const PoissonSpec& spec, int rank, std::size_t dimension, int step) {
  std::array<int, 2> at{rank / spec.grid[1], rank % spec.grid[1]};
  at[dimension] = (at[dimension] + step + spec.grid[dimension]) % spec.grid[dimension];
  return at[0] * spec.grid[1] + at[1];
}

// The schedule of the faces with every rank's summand for every other one in the same round, as array 2. So it travels
// in the messages to the neighbours, and alone to other ranks.
Schedule with_summands(Schedule faces) {
  const Schedule all = allgather(faces.ranks, 1, sizeof(double));
  faces.name = "poisson with sum";
  faces.arrays.push_back(all.arrays[0]);
  for (Transfer transfer : all.rounds[0].transfers) {
    transfer.from.array = transfer.to.array = 2;
    faces.rounds[0].transfers.push_back(std::move(transfer));
  }
  return faces;
}

class PlanExchange : public PoissonExchange {
 public:
  PlanExchange(const Group& group, const Schedule& faces, std::span<const std::span<std::byte>> arrays,
               const PoissonOptions& options)
      : faces_(group, faces, arrays, face_options(faces, group.rank(), options)),
        summands_(group.allocate(group.size() * static_cast<std::int64_t>(sizeof(double)))),
        sums_(group, allgather(group.size(), 1, sizeof(double), group.rank()), std::array{summands_.bytes()},
              {.transport = options.transport}),
        both_(both(group, faces, arrays, options)),
        values_(reinterpret_cast<double*>(summands_.bytes().data()), static_cast<std::size_t>(group.size())),
        rank_(static_cast<std::size_t>(group.rank())) {}

  void start() override { faces_.start(); }
  void finish() override { faces_.finish(); }

  void start_sum(double mine) override {
    values_[rank_] = mine;
    sums_.start();
  }

  double finish_sum() override {
    sums_.finish();
    return sum();
  }

  void start_with_sum(double mine) override {
    values_[rank_] = mine;
    both_.start();
  }

  double finish_with_sum() override {
    both_.finish();
    return sum();
  }

 private:
  // A slot holds all data for one neighbour, so that start() never waits until the neighbour has received half of it.
  static PlanOptions face_options(const Schedule& faces, int rank, const PoissonOptions& options) {
    PlanOptions plan{.transport = options.transport, .slots = options.buffers};
    for (const PairCount& pair : count(faces.part(rank)).pairs) plan.slot_bytes = std::max(plan.slot_bytes, pair.bytes);
    return plan;
  }

  [[nodiscard]] Plan both(const Group& group, const Schedule& faces, std::span<const std::span<std::byte>> arrays,
                          const PoissonOptions& options) const {
    const Schedule schedule = with_summands(faces);
    return {group, schedule, std::array{arrays[0], arrays[1], summands_.bytes()},
            face_options(schedule, group.rank(), options)};
  }

  [[nodiscard]] double sum() const {
    double sum = 0;
    for (const double value : values_) sum += value;
    return sum;
  }

  Plan faces_;
  SharedArray summands_;
  Plan sums_;
  Plan both_;
  std::span<double> values_;
  std::size_t rank_;
};

}  // namespace

Schedule poisson_faces(const PoissonSpec& spec, std::int64_t enlargement) {
  if (enlargement < 1) throw BadInput("Poisson: expected an enlargement of 1 or more, found " + text(enlargement));
  Schedule schedule{"poisson",
                    0,
                    {{"own", 8, ElementType::float64, {}}, {"neighbours'", 8, ElementType::float64, {}}},
                    {Round{}},
                    {}};
  std::vector<detail::FaceLayout> layouts{detail::face_layout(poisson_block(spec, 0), enlargement)};
  schedule.ranks = ranks_of(spec);
  for (int rank = 1; rank < schedule.ranks; ++rank) {
    layouts.push_back(detail::face_layout(poisson_block(spec, rank), enlargement));
  }
  for (const detail::FaceLayout& layout : layouts) {
    for (ArraySpec& array : schedule.arrays) array.elements.push_back(layout.elements);
  }
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    const detail::FaceLayout& own = layouts[static_cast<std::size_t>(rank)];
    // The kernels wrap rows around that are not cut (PoissonUpdate::wraps).
    const std::size_t faces = spec.grid[1] == 1 ? 2 : 4;
    for (std::size_t face = 0; face < faces; ++face) {
      // The lower face goes to the rank below, where it is the face of the neighbour above, and vice versa.
      const int to = neighbour(spec, rank, face / 2, face % 2 == 0 ? -1 : 1);
      // A local copy is not a message, so it is not enlarged.
      const std::int64_t sites = own.sites[face] * (to == rank ? 1 : enlargement);
      const std::int64_t target = layouts[static_cast<std::size_t>(to)].offset[face ^ 1];
      schedule.rounds[0].transfers.push_back(
          {{rank, 0, Slice::range(own.offset[face], sites)}, {to, 1, Slice::range(target, sites)}});
      schedule.must_cover.push_back({rank, 1, Slice::range(own.offset[face], sites)});
    }
  }
  return schedule;
}

namespace detail {

FaceLayout face_layout(const PoissonBlock& block, std::int64_t enlargement) {
  FaceLayout layout;
  for (std::size_t face = 0; face < 4; ++face) {
    layout.offset[face] = layout.elements;
    layout.sites[face] = block.extents[1 - face / 2];
    if (layout.sites[face] > max_elements / enlargement) {
      throw BadInput("Poisson: faces of " + base::counted(layout.sites[face], "site") + ", enlarged " +
                     text(enlargement) + " times, are too long; enlarge them less");
    }
    layout.elements += (layout.sites[face] * enlargement + line_elements - 1) / line_elements * line_elements;
  }
  return layout;
}

AlignedArray::AlignedArray(std::int64_t elements) : elements_(elements) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(double);
  data_.reset(static_cast<double*>(::operator new[](bytes, std::align_val_t{line})));
  std::memset(data_.get(), 0, bytes);
}

void AlignedArray::Free::operator()(double* memory) const noexcept {
  ::operator delete[](memory, std::align_val_t{line});
}

std::span<std::byte> AlignedArray::bytes() const noexcept {
  return std::as_writable_bytes(std::span(data_.get(), static_cast<std::size_t>(elements_)));
}

std::unique_ptr<PoissonExchange> plan_exchange(const Group& group, const Schedule& faces,
                                               std::span<const std::span<std::byte>> arrays,
                                               const PoissonOptions& options) {
  return std::make_unique<PlanExchange>(group, faces, arrays, options);
}

}  // namespace detail

}  // namespace onehop::poisson
