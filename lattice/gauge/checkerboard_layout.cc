#include "lattice/gauge/checkerboard_layout.h"

#include "src/base/thread_count.h"

namespace onehop::lattice::detail {

CheckerboardLayout::CheckerboardLayout(const Group& group, const Geometry& geometry, int fields)
    : group_(group), geometry_(geometry), pool_(base::thread_count(0, group)) {
  const auto block = geometry_.block();
  const auto origin = geometry_.origin(group_.rank());
  const std::size_t dims = block.size();
  // Padding: a vector may start at the second place of a half, and extend beyond its last site.
  const std::int64_t most = (block[0] + 1) / 2;
  const std::int64_t remaining = most % 8;
  half_ = most - remaining + (remaining > 4 ? 8 : remaining > 0 ? 4 : 0) + 1;

  std::array<std::ptrdiff_t, 4> stride{};
  std::ptrdiff_t next = 2 * half_ * 18;
  std::int64_t count = 1;
  for (std::size_t d = 1; d < dims; ++d) {
    stride[d] = next;
    next *= block[d] + (cut(d) ? 2 : 0);
    count *= block[d];
  }
  doubles_ = static_cast<std::size_t>(next);
  for (std::int64_t index = 0; index < count; ++index) {
    Row row{};
    std::int64_t parity = origin[0] - 1;
    std::array<std::int64_t, 4> global{origin[0]};
    auto left = index;
    for (std::size_t d = 1; d < dims; ++d) {
      const std::int64_t at = left % block[d];
      left /= block[d];
      row.at += (at + (cut(d) ? 1 : 0)) * stride[d];
      row.steps.ahead[d] = cut(d) || at + 1 < block[d] ? stride[d] : -stride[d] * (block[d] - 1);
      row.steps.back[d] = cut(d) || at > 0 ? -stride[d] : stride[d] * (block[d] - 1);
      global[d] = origin[d] + at;
      parity += global[d];
    }
    row.parity = static_cast<int>((parity + 2) % 2);
    for (std::size_t d = dims; d-- > 0;) {
      row.number =
          row.number * static_cast<std::uint64_t>(geometry_.spec().extents[d]) + static_cast<std::uint64_t>(global[d]);
    }
    rows_.push_back(row);
  }
  for (int field = 0; field < fields; ++field) links_.emplace_back(doubles_);
  const Schedule schedule = ghosts();
  if (schedule.rounds.empty()) return;
  for (auto& of_direction : links_) {
    const std::array arrays{std::as_writable_bytes(of_direction.span())};
    plans_.emplace_back(group_, schedule.part(group_.rank()), arrays);
  }
}

// One round per direction that is cut. A round includes the ghosts of lower directions, so that edges and corners are
// correct.
Schedule CheckerboardLayout::ghosts() const {
  const auto block = geometry_.block();
  std::vector<std::int64_t> shape;  // the last direction first; then number, parity of the place, half of it
  for (std::size_t d = block.size(); d-- > 1;) shape.push_back(block[d] + (cut(d) ? 2 : 0));
  shape.insert(shape.end(), {18, 2, half_});

  Schedule schedule;
  schedule.name = "ghosts of links by parities";
  schedule.ranks = geometry_.ranks();
  schedule.arrays = {{"links", sizeof(double), ElementType::float64, {static_cast<std::int64_t>(doubles_)}}};
  for (std::size_t along = 0; along < block.size(); ++along) {
    if (!cut(along)) continue;
    const auto layer = [&](std::int64_t number) {
      std::vector<std::int64_t> start;
      std::vector<std::int64_t> extents;
      for (std::size_t d = block.size(); d-- > 1;) {
        const bool whole = d < along || !cut(d);
        start.push_back(d == along ? number : whole ? 0 : 1);
        extents.push_back(d == along ? 1 : block[d] + (whole && cut(d) ? 2 : 0));
      }
      if (along == 0) {
        start.insert(start.end(), {0, number % 2, number / 2});
        extents.insert(extents.end(), {18, 1, 1});
      } else {
        start.insert(start.end(), {0, 0, 0});
        extents.insert(extents.end(), {18, 2, half_});
      }
      return Slice::subarray(shape, start, extents);
    };
    Round round;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      std::vector<int> to = geometry_.coordinates(rank);
      to[along] += 1;
      round.transfers.push_back({{rank, 0, layer(block[along])}, {geometry_.rank_at(to), 0, layer(0)}});
      to[along] -= 2;
      round.transfers.push_back({{rank, 0, layer(1)}, {geometry_.rank_at(to), 0, layer(block[along] + 1)}});
    }
    schedule.rounds.push_back(std::move(round));
  }
  return schedule;
}

std::array<const double*, 4> CheckerboardLayout::data() const {
  std::array<const double*, 4> found{};
  for (std::size_t mu = 0; mu < links_.size(); ++mu) found[mu] = links_[mu].data();
  return found;
}

void CheckerboardLayout::load(std::span<const std::complex<double>> links) {
  const std::complex<double>* from = links.data();
  for (const Row& row : rows_) {
    for (std::int64_t x = 1; x <= row_sites(); ++x) {
      for (auto& field : links_) {
        double* to = field.data() + row.at + place(x);
        for (int i = 0; i < 9; ++i, ++from, to += 4 * half_) {
          to[0] = from->real();
          to[2 * half_] = from->imag();
        }
      }
    }
    for (auto& field : links_) {
      for (const bool odd : {false, true}) close_row(field.data(), row, odd);
    }
  }
  for (std::size_t mu = 0; mu < links_.size(); ++mu) fill(static_cast<int>(mu));
}

std::vector<std::complex<double>> CheckerboardLayout::store() const {
  std::vector<std::complex<double>> links;
  links.reserve(sites() * links_.size() * 9);
  for (const Row& row : rows_) {
    for (std::int64_t x = 1; x <= row_sites(); ++x) {
      for (const auto& field : links_) {
        const double* from = field.data() + row.at + place(x);
        for (int i = 0; i < 9; ++i, from += 4 * half_) links.emplace_back(from[0], from[2 * half_]);
      }
    }
  }
  return links;
}

// The ghost that is filled has the parity of the sites being updated, which no other thread reads meanwhile, so this is
// no data race.
void CheckerboardLayout::close_row(double* field, const Row& row, bool odd) const {
  if (cut(0)) return;
  double* numbers = field + row.at;
  const std::ptrdiff_t to = place(odd ? row_sites() + 1 : 0);
  const std::ptrdiff_t from = place(odd ? 1 : row_sites());
  for (int i = 0; i < 18; ++i, numbers += 2 * half_) numbers[to] = numbers[from];
}

void CheckerboardLayout::fill(int direction) {
  if (!plans_.empty()) plans_[static_cast<std::size_t>(direction)].run();
}

}  // namespace onehop::lattice::detail
