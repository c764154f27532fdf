#include "onehop/lattice/geometry.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lattice/geometry/face_order.h"
#include "lattice/geometry/geometry_check.h"
#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::lattice {

using detail::check_extents;
using detail::complain;
using detail::joined;
using detail::max_lanes;
using detail::text;
using detail::thinnest;

namespace {

constexpr std::int64_t max_vectors = std::int64_t{1} << 30;

std::size_t as_index(std::int64_t number) { return static_cast<std::size_t>(number); }

// A slice of ascending numbers, as a range if they are contiguous.
Slice slice_of(std::vector<std::int64_t> numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  if (count == 0) return {};
  if (numbers.back() - numbers.front() + 1 == count) return Slice::range(numbers.front(), count);
  return Slice::list(std::move(numbers));
}

}  // namespace

Geometry::Geometry(GeometrySpec spec) : spec_(std::move(spec)) {
  check();
  choose_lanes();
  order_sites();
  find_faces();
}

void Geometry::check() {
  check_extents(spec_.extents);
  if (spec_.grid.size() != spec_.extents.size()) {
    complain("expected a grid of " + base::counted(spec_.extents.size(), "direction") + ", like the extents, found " +
             joined(spec_.grid));
  }
  if (spec_.width < 1 || spec_.width > 3) complain("expected a width of 1 to 3 sites, found " + text(spec_.width));
  if (spec_.parities < 1 || spec_.parities > 2) complain("expected 1 or 2 parities, found " + text(spec_.parities));
  std::int64_t ranks = 1;
  for (std::size_t d = 0; d < spec_.extents.size(); ++d) {
    const std::int64_t extent = spec_.extents[d];
    const std::int64_t cuts = spec_.grid[d];
    const std::string where = " in direction " + text(d);
    if (cuts < 1) complain("expected 1 rank or more" + where + ", found " + text(cuts));
    if (extent % cuts != 0) {
      complain("expected an extent that the grid divides" + where + ", found " + base::counted(extent, "site") +
               " on " + base::counted(cuts, "rank") + "; take another grid or extent");
    }
    if (spec_.parities == 2 && extent % 2 != 0) {
      complain("expected even extents, so that even and odd sites alternate around the periodic lattice, found " +
               text(extent) + where + "; take an even extent, or store all sites together (parities 1)");
    }
    if (cuts > 1 && extent / cuts < thinnest(spec_.width)) {
      complain("expected blocks of at least " + base::counted(thinnest(spec_.width), "site") + where + ", found " +
               text(extent / cuts) + "; take fewer ranks in this direction");
    }
    ranks *= cuts;
    if (ranks > std::numeric_limits<int>::max()) complain("expected fewer than 2^31 ranks");
    block_.push_back(extent / cuts);
  }
  ranks_ = static_cast<int>(ranks);
  if (spec_.rank_at.empty()) return;
  if (std::ssize(spec_.rank_at) != ranks) {
    complain("expected rank_at with a rank for each of the " + base::counted(ranks, "position") +
             " of the grid, found " + text(spec_.rank_at.size()));
  }
  position_of_.assign(spec_.rank_at.size(), -1);
  for (std::size_t i = 0; i < spec_.rank_at.size(); ++i) {
    const int rank = spec_.rank_at[i];
    if (rank < 0 || rank >= ranks_ || position_of_[as_index(rank)] >= 0) {
      complain("expected rank_at as a permutation of the ranks 0 to " + text(ranks_ - 1) + ", found " + text(rank) +
               (rank < 0 || rank >= ranks_ ? "" : " twice"));
    }
    position_of_[as_index(rank)] = static_cast<int>(i);
  }
}

void Geometry::choose_lanes() {
  if (spec_.lanes < 1 || spec_.lanes > max_lanes || !std::has_single_bit(static_cast<unsigned>(spec_.lanes)))
    complain("expected a number of lanes that is a power of two, at most 64, found " + text(spec_.lanes));
  lane_grid_.assign(block_.size(), 1);
  sub_block_ = block_;
  const std::int64_t unit = spec_.parities == 2 ? 4 : 2;  // so that half an extent is even, or integer
  for (int left = spec_.lanes; left > 1; left /= 2) {
    std::size_t best = block_.size();
    for (std::size_t d = 0; d < block_.size(); ++d) {
      const bool fits =
          spec_.grid[d] == 1 && sub_block_[d] % unit == 0 && sub_block_[d] / 2 >= std::int64_t{spec_.width};
      if (fits && (best == block_.size() || sub_block_[d] >= sub_block_[best])) best = d;
    }
    if (best == block_.size()) {
      complain("expected a block that can be cut into " + text(spec_.lanes) + " sub-blocks, found " + joined(block_) +
               " sites on a grid of " + joined(spec_.grid) +
               " ranks; lanes come from directions that are not cut between ranks, in parts of " +
               (spec_.parities == 2 ? "even extents" : "equal extents") + "; take fewer lanes");
    }
    sub_block_[best] /= 2;
    lane_grid_[best] *= 2;
  }
  std::int64_t vectors = 1;
  for (const std::int64_t extent : sub_block_) vectors *= extent;
  if (vectors > max_vectors) complain("expected at most 2^30 vectors per rank, found " + text(vectors));
}

Geometry::Coordinates Geometry::inside(std::int64_t number) const {
  Coordinates at{};
  for (std::size_t d = 0; d < sub_block_.size(); ++d) {
    at[d] = number % sub_block_[d];
    number /= sub_block_[d];
  }
  return at;
}

std::int64_t Geometry::number_of(const Coordinates& at) const {
  std::int64_t number = 0;
  for (std::size_t d = sub_block_.size(); d-- > 0;) number = number * sub_block_[d] + at[d];
  return number;
}

// All lanes of a vector have the same parity, because sub-blocks have even extents in directions with several of them.
int Geometry::parity_of(const Coordinates& at) const {
  return static_cast<int>(std::accumulate(at.begin(), at.end(), std::int64_t{0}) % spec_.parities);
}

bool Geometry::in_face(const Coordinates& at, int direction, Side side) const {
  const auto d = static_cast<std::size_t>(direction);
  if (!is_cut(direction)) return false;
  return side == Side::below ? at[d] < spec_.width : at[d] >= sub_block_[d] - spec_.width;
}

void Geometry::order_sites() {
  std::vector<int> cut;
  for (int d = 0; d < dims(); ++d) {
    if (is_cut(d)) cut.push_back(d);
  }
  // The directions with the largest faces first, which are the shortest ones.
  std::ranges::stable_sort(cut, {}, [&](int d) { return sub_block_[static_cast<std::size_t>(d)]; });
  const std::vector<detail::Part> parts = detail::face_order(cut);
  std::array<std::size_t, 81> rank_of{};  // position of each part in `parts`; index: the part as a number in base 3
  const auto part_number = [](const detail::Part& part) {
    std::size_t number = 0;
    for (const detail::Edge edge : part) number = number * 3 + static_cast<std::size_t>(edge);
    return number;
  };
  for (std::size_t i = 0; i < parts.size(); ++i) rank_of[part_number(parts[i])] = i;

  std::int64_t vectors = 1;
  for (const std::int64_t extent : sub_block_) vectors *= extent;
  std::vector<std::vector<std::vector<std::int64_t>>> sorted(
      as_index(spec_.parities), std::vector<std::vector<std::int64_t>>(parts.size()));  // [parity][part]
  for (std::int64_t number = 0; number < vectors; ++number) {
    const Coordinates at = inside(number);
    detail::Part part{};
    for (int d = 0; d < dims(); ++d) {
      if (in_face(at, d, Side::below)) part[as_index(d)] = detail::Edge::low;
      if (in_face(at, d, Side::above)) part[as_index(d)] = detail::Edge::high;
    }
    const std::size_t place = spec_.lexicographic ? 0 : rank_of[part_number(part)];
    sorted[as_index(parity_of(at))][place].push_back(number);
  }
  begin_ = {0};
  for (const auto& of_parity : sorted) {
    const bool has_interior = !spec_.lexicographic || cut.empty();
    interior_.push_back(begin_.back() + (has_interior ? static_cast<std::int64_t>(of_parity[0].size()) : 0));
    for (const auto& of_part : of_parity) order_.insert(order_.end(), of_part.begin(), of_part.end());
    begin_.push_back(static_cast<std::int64_t>(order_.size()));
  }
  places_.resize(order_.size());
  for (std::size_t k = 0; k < order_.size(); ++k) places_[as_index(order_[k])] = static_cast<std::int64_t>(k);
}

std::size_t Geometry::face_number(int direction, Side side, int parity) const {
  if (direction < 0 || direction >= dims())
    complain("expected a direction from 0 to " + text(dims() - 1) + ", found " + text(direction));
  if (parity < 0 || parity >= spec_.parities)
    complain("expected a parity from 0 to " + text(spec_.parities - 1) + ", found " + text(parity));
  return (as_index(parity) * as_index(dims()) + as_index(direction)) * 2 + static_cast<std::size_t>(side);
}

void Geometry::find_faces() {
  const std::size_t count = as_index(spec_.parities) * as_index(dims()) * 2;
  std::vector<std::vector<std::int64_t>> numbers(count);
  for (std::size_t k = 0; k < order_.size(); ++k) {
    const Coordinates at = inside(order_[k]);
    for (int d = 0; d < dims(); ++d) {
      for (const Side side : {Side::below, Side::above}) {
        if (in_face(at, d, side)) numbers[face_number(d, side, parity_of(at))].push_back(static_cast<std::int64_t>(k));
      }
    }
  }
  for (auto& each : numbers) faces_.push_back(slice_of(std::move(each)));
  ghost_.resize(count);
  for (int parity = 0; parity < spec_.parities; ++parity) {
    for (int d = 0; d < dims(); ++d) {
      // If the block's extent is odd, the neighbouring block's local parities are swapped.
      const int from = static_cast<int>((parity + block_[as_index(d)]) % spec_.parities);
      for (const Side side : {Side::below, Side::above}) {
        const Side other = side == Side::below ? Side::above : Side::below;
        const std::int64_t elements = face(d, other, from).elements();
        if (elements == 0) continue;
        ghost_[face_number(d, side, parity)] = Slice::range(vectors() + ghosts_, elements);
        ghosts_ += elements;
      }
    }
  }
}

const Slice& Geometry::face(int direction, Side side, int parity) const {
  return faces_[face_number(direction, side, parity)];
}

const Slice& Geometry::ghost(int direction, Side side, int parity) const {
  return ghost_[face_number(direction, side, parity)];
}

std::int64_t Geometry::lexicographic_pieces(int direction, Side side, int parity) const {
  (void)face_number(direction, side, parity);
  std::int64_t pieces = 0;
  bool inside_piece = false;
  for (std::int64_t number = 0; number < vectors(); ++number) {
    const Coordinates at = inside(number);
    if (parity_of(at) != parity) continue;
    const bool member = in_face(at, direction, side);
    pieces += member && !inside_piece ? 1 : 0;
    inside_piece = member;
  }
  return pieces;
}

std::vector<int> Geometry::coordinates(int rank) const {
  if (rank < 0 || rank >= ranks_) complain("expected a rank from 0 to " + text(ranks_ - 1) + ", found " + text(rank));
  std::vector<int> at;
  int position = position_of_.empty() ? rank : position_of_[as_index(rank)];
  for (const int cuts : spec_.grid) {
    at.push_back(position % cuts);
    position /= cuts;
  }
  return at;
}

int Geometry::rank_at(std::span<const int> coordinates) const {
  if (coordinates.size() != spec_.grid.size()) {
    complain("expected coordinates in a grid of " + base::counted(dims(), "direction") + ", found " +
             text(coordinates.size()));
  }
  int position = 0;
  for (std::size_t d = spec_.grid.size(); d-- > 0;) {
    const int cuts = spec_.grid[d];
    position = position * cuts + (coordinates[d] % cuts + cuts) % cuts;
  }
  return spec_.rank_at.empty() ? position : spec_.rank_at[as_index(position)];
}

std::vector<std::int64_t> Geometry::origin(int rank) const {
  std::vector<std::int64_t> first;
  const std::vector<int> at = coordinates(rank);
  for (std::size_t d = 0; d < at.size(); ++d) first.push_back(at[d] * block_[d]);
  return first;
}

int Geometry::origin_parity(int rank) const {
  const std::vector<std::int64_t> first = origin(rank);
  return static_cast<int>(std::accumulate(first.begin(), first.end(), std::int64_t{0}) % spec_.parities);
}

std::int64_t Geometry::site(std::int64_t vector, int lane) const {
  if (vector < 0 || vector >= vectors() || lane < 0 || lane >= spec_.lanes) {
    complain("expected one of " + text(vectors()) + " vectors and of " + base::counted(spec_.lanes, "lane") +
             ", found vector " + text(vector) + ", lane " + text(lane));
  }
  const Coordinates at = inside(order_[as_index(vector)]);
  std::int64_t number = 0;
  std::int64_t stride = 1;
  for (std::size_t d = 0; d < block_.size(); ++d) {
    number += stride * (lane % lane_grid_[d] * sub_block_[d] + at[d]);
    lane /= lane_grid_[d];
    stride *= block_[d];
  }
  return number;
}

std::vector<Geometry::Neighbour> Geometry::neighbours(int distance) const {
  if (distance < 1 || distance > spec_.width) {
    complain("expected a distance from 1 to the geometry's width of " + text(spec_.width) + ", found " +
             text(distance));
  }
  // The position of each vector in each face that contains it.
  std::vector<std::vector<std::int64_t>> position(faces_.size());
  for (std::size_t f = 0; f < faces_.size(); ++f) {
    if (faces_[f].elements() == 0) continue;
    position[f].assign(order_.size(), -1);
    std::int64_t count = 0;
    faces_[f].for_each_run([&](std::int64_t first, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) position[f][as_index(first + i)] = count++;
    });
  }
  std::vector<Neighbour> found;
  found.reserve(order_.size() * as_index(dims()) * 2);
  for (const std::int64_t number : order_) {
    const Coordinates at = inside(number);
    for (int d = 0; d < dims(); ++d) {
      const std::int64_t extent = sub_block_[as_index(d)];
      for (const Side side : {Side::below, Side::above}) {
        Coordinates other = at;
        const std::int64_t wanted = at[as_index(d)] + (side == Side::below ? -distance : distance);
        other[as_index(d)] = (wanted % extent + extent) % extent;
        const std::int64_t place = places_[as_index(number_of(other))];
        const bool outside = wanted < 0 || wanted >= extent;
        if (!outside || !is_cut(d)) {
          found.push_back({static_cast<std::int32_t>(place), outside && lane_grid_[as_index(d)] > 1});
          continue;
        }
        const int from = parity_of(other);
        const int parity = static_cast<int>((from + block_[as_index(d)]) % spec_.parities);
        const Side opposite = side == Side::below ? Side::above : Side::below;
        found.push_back({static_cast<std::int32_t>(ghost(d, side, parity).offset() +
                                                   position[face_number(d, opposite, from)][as_index(place)]),
                         false});
      }
    }
  }
  return found;
}

std::vector<int> Geometry::lane_source(int direction, Side side) const {
  (void)face_number(direction, side, 0);
  int stride = 1;
  for (int d = 0; d < direction; ++d) stride *= lane_grid_[as_index(d)];
  const int count = lane_grid_[as_index(direction)];
  std::vector<int> source;
  for (int lane = 0; lane < spec_.lanes; ++lane) {
    const int at = lane / stride % count;
    const int other = (at + (side == Side::below ? count - 1 : 1)) % count;
    source.push_back(lane + (other - at) * stride);
  }
  return source;
}

Schedule Geometry::halo(std::int64_t element_bytes, ElementType type, std::optional<int> parity,
                        std::optional<int> only_rank) const {
  if (element_bytes < 1) complain("expected elements of 1 byte or more, found " + text(element_bytes));
  if (parity && (*parity < 0 || *parity >= spec_.parities))
    complain("expected a parity from 0 to " + text(spec_.parities - 1) + ", found " + text(*parity));
  if (only_rank) (void)coordinates(*only_rank);
  if (vectors() + ghosts_ > std::numeric_limits<std::int32_t>::max()) complain("expected fewer than 2^31 vectors");
  Schedule schedule{"lattice halo", ranks_, {{"field", element_bytes, type, {vectors() + ghosts_}}}, {Round{}}, {}};
  for (int to = 0; to < ranks_; ++to) {
    const std::vector<int> at = coordinates(to);
    for (int local = 0; local < spec_.parities; ++local) {
      if (parity && (local + origin_parity(to)) % spec_.parities != *parity) continue;
      for (int d = 0; d < dims(); ++d) {
        for (const Side side : {Side::below, Side::above}) {
          const Slice& ghosts = ghost(d, side, local);
          if (ghosts.elements() == 0) continue;
          std::vector<int> beside = at;
          beside[as_index(d)] += side == Side::below ? -1 : 1;
          const int from = rank_at(beside);
          if (only_rank && *only_rank != from && *only_rank != to) continue;
          const int from_parity = static_cast<int>((local + block_[as_index(d)]) % spec_.parities);
          const Slice& sent = face(d, side == Side::below ? Side::above : Side::below, from_parity);
          schedule.rounds[0].transfers.push_back({{from, 0, sent}, {to, 0, ghosts}});
          if (!only_rank || *only_rank == to) schedule.must_cover.push_back({to, 0, ghosts});
        }
      }
    }
  }
  std::ranges::stable_sort(schedule.rounds[0].transfers, {},
                           [](const Transfer& each) { return std::pair(each.from.rank, each.to.rank); });
  return schedule;
}

}  // namespace onehop::lattice
