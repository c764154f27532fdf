// The ghosts of a block are products, over the dimensions, of the ranges below, inside and above the block. Each
// dimension is therefore cut separately into segments (`AxisSegment`) for all positions in the grid. The transfers of a
// rank are products of segments, and the part of one rank needs only the segments that touch its position.
#include <algorithm>
#include <array>
#include <tuple>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "src/base/checked.h"
#include "src/schedule/patterns/halo_checks.h"
#include "src/schedule/schedule_size.h"

namespace onehop {

namespace {

// How one dimension of the global array is split.
struct Axis {
  std::int64_t extent = 0;
  int blocks = 1;
  std::int64_t below = 0;
  std::int64_t above = 0;
  bool periodic = false;

  [[nodiscard]] std::int64_t size_of(int block) const { return extent / blocks + (block < extent % blocks ? 1 : 0); }
  [[nodiscard]] std::int64_t start_of(int block) const {
    return block * (extent / blocks) + std::min<std::int64_t>(block, extent % blocks);
  }
  // The block that owns `site`, 0 <= site < extent.
  [[nodiscard]] int owner_of(std::int64_t site) const {
    const std::int64_t small = extent / blocks;
    const std::int64_t in_large = (extent % blocks) * (small + 1);
    return static_cast<int>(site < in_large ? site / (small + 1) : extent % blocks + (site - in_large) / small);
  }
};

// Sites of one block's local array (ghosts included) that one block owns. Positions count from each local array's
// start.
struct AxisSegment {
  int to = 0;
  int from = 0;
  std::int64_t to_start = 0;
  std::int64_t from_start = 0;
  std::int64_t length = 0;
  bool ghost = false;
};

// The local positions [first, last) of one block.
struct AxisRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// Cuts the ghosts [first, first + length) of a block, in global numbers that may lie outside the array, by owner.
void cut_ghosts(const Axis& axis, int block, std::int64_t first, std::int64_t length,
                std::vector<AxisSegment>& segments) {
  if (axis.extent == 0) return;
  const std::int64_t origin = axis.start_of(block) - axis.below;
  std::int64_t site = axis.periodic ? first : std::max<std::int64_t>(first, 0);
  const std::int64_t end = axis.periodic ? first + length : std::min(first + length, axis.extent);
  while (site < end) {
    const std::int64_t remainder = site % axis.extent;
    const std::int64_t wrapped = remainder < 0 ? remainder + axis.extent : remainder;
    const int owner = axis.owner_of(wrapped);
    const std::int64_t inside = wrapped - axis.start_of(owner);
    const std::int64_t count = std::min(end - site, axis.size_of(owner) - inside);
    segments.push_back({block, owner, site - origin, axis.below + inside, count, true});
    site += count;
  }
}

std::vector<AxisSegment> cut_axis(const Axis& axis) {
  std::vector<AxisSegment> segments;
  for (int block = 0; block < axis.blocks; ++block) {
    const std::int64_t start = axis.start_of(block);
    const std::int64_t size = axis.size_of(block);
    cut_ghosts(axis, block, start - axis.below, axis.below, segments);
    if (size > 0) segments.push_back({block, block, axis.below, axis.below, size, false});
    cut_ghosts(axis, block, start + size, axis.above, segments);
  }
  return segments;
}

// A lower bound of their number, near enough to refuse in time what no memory holds.
double least_segments(const Axis& axis) {
  const auto reach = [&](std::int64_t width) {
    const double wide = static_cast<double>(axis.periodic ? width : std::min(width, axis.extent) / 2);
    return wide / static_cast<double>(std::max<std::int64_t>(axis.size_of(0), 1));
  };
  return axis.extent == 0 ? 0 : axis.blocks * (reach(axis.below) + reach(axis.above));
}

// Builds blocks and transfers from a spec, which the constructor checks.
class HaloBuilder {
 public:
  explicit HaloBuilder(const HaloSpec& spec) : spec_(spec) {
    ranks_ = check_halo(spec);
    if (!spec.rank_at.empty()) position_of_ = halo_positions(spec.rank_at, ranks_);
    for (std::size_t d = 0; d < spec.extents.size(); ++d) {
      axes_.push_back({spec.extents[d], spec.grid[d], spec.widths[d].first, spec.widths[d].second, spec.periodic[d]});
    }
  }

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] HaloBlock block(int rank) const;
  [[nodiscard]] Schedule build(std::optional<int> only_rank);

 private:
  using Segments = std::array<const AxisSegment*, max_halo_dims>;

  // One product of segments; all fields share it.
  struct Piece {
    int from = 0;
    int to = 0;
    Slice read;
    Slice write;
    std::array<std::int32_t, max_halo_dims> key{};  // makes the order of pieces between two ranks the same on both
  };

  [[nodiscard]] std::size_t dims() const { return axes_.size(); }
  [[nodiscard]] int rank_of(const Segments& segments, int AxisSegment::* end) const;
  [[nodiscard]] std::array<int, max_halo_dims> coords_of(int rank) const;
  void index_segments();
  [[nodiscard]] double number_of_transfers() const;
  void add_pieces(int rank, bool as_sender, std::vector<Piece>& pieces) const;
  void add_piece(const Segments& segments, std::vector<Piece>& pieces) const;
  [[nodiscard]] std::vector<ArraySpec> array_specs() const;
  void add_transfers(std::vector<Piece>& pieces, std::vector<Transfer>& transfers) const;
  void add_must_cover(int rank, std::vector<Place>& places) const;
  [[nodiscard]] AxisRange written_range(std::size_t d, int block) const;

  const HaloSpec& spec_;
  int ranks_ = 1;
  std::vector<int> position_of_;  // of each rank in the grid; empty: its own number
  std::vector<Axis> axes_;
  std::vector<std::vector<AxisSegment>> segments_;  // per dimension
  // Per dimension and grid position: the segments sent from it, and those received by it.
  std::vector<std::vector<std::vector<const AxisSegment*>>> sent_;
  std::vector<std::vector<std::vector<const AxisSegment*>>> received_;
};

std::array<int, max_halo_dims> HaloBuilder::coords_of(int rank) const {
  std::array<int, max_halo_dims> coords{};
  int position = position_of_.empty() ? rank : position_of_[static_cast<std::size_t>(rank)];
  for (std::size_t d = dims(); d-- > 0;) {
    coords[d] = position % axes_[d].blocks;
    position /= axes_[d].blocks;
  }
  return coords;
}

int HaloBuilder::rank_of(const Segments& segments, int AxisSegment::* end) const {
  int position = 0;
  for (std::size_t d = 0; d < dims(); ++d) position = position * axes_[d].blocks + segments[d]->*end;
  return spec_.rank_at.empty() ? position : spec_.rank_at[static_cast<std::size_t>(position)];
}

HaloBlock HaloBuilder::block(int rank) const {
  if (rank < 0 || rank >= ranks_) {
    throw BadInput("halo: expected a rank from 0 to " + std::to_string(ranks_ - 1) + ", found " + std::to_string(rank));
  }
  HaloBlock block;
  const auto coords = coords_of(rank);
  block.coords.assign(coords.begin(), coords.begin() + static_cast<std::ptrdiff_t>(dims()));
  for (std::size_t d = 0; d < dims(); ++d) {
    const Axis& axis = axes_[d];
    block.start.push_back(axis.start_of(coords[d]));
    block.extents.push_back(axis.size_of(coords[d]));
    block.shape.push_back(axis.below + axis.size_of(coords[d]) + axis.above);
  }
  return block;
}

std::vector<ArraySpec> HaloBuilder::array_specs() const {
  std::vector<std::int64_t> elements;
  for (int rank = 0; rank < ranks_; ++rank) {
    std::int64_t sites = 1;
    const auto coords = coords_of(rank);
    for (std::size_t d = 0; d < dims(); ++d) {
      const Axis& axis = axes_[d];
      sites = detail::checked_multiply(sites, axis.below + axis.size_of(coords[d]) + axis.above,
                                       "the number of elements of a halo's local array");
    }
    elements.push_back(sites);
  }
  if (std::ranges::all_of(elements, [&](std::int64_t sites) { return sites == elements.front(); })) elements.resize(1);
  const std::int64_t most = *std::ranges::max_element(elements);
  std::vector<ArraySpec> arrays;
  for (std::size_t field = 0; field < spec_.element_bytes.size(); ++field) {
    (void)detail::checked_multiply(most, spec_.element_bytes[field], "the bytes of a halo's local array");
    const ElementType type = spec_.types.empty() ? ElementType::bytes : spec_.types[field];
    arrays.push_back({"field" + std::to_string(field), spec_.element_bytes[field], type, elements});
  }
  return arrays;
}

void HaloBuilder::index_segments() {
  segments_.clear();
  for (const Axis& axis : axes_) {
    detail::check_fits("halo", least_segments(axis), "cuts of ghost layers", sizeof(AxisSegment));
    segments_.push_back(cut_axis(axis));
  }
  for (std::size_t d = 0; d < dims(); ++d) {
    sent_.emplace_back(static_cast<std::size_t>(axes_[d].blocks));
    received_.emplace_back(static_cast<std::size_t>(axes_[d].blocks));
    for (const AxisSegment& segment : segments_[d]) {
      sent_[d][static_cast<std::size_t>(segment.from)].push_back(&segment);
      received_[d][static_cast<std::size_t>(segment.to)].push_back(&segment);
    }
  }
}

// A transfer is a product of one segment of each dimension: of one that holds ghosts (with corners, or more) and of the
// interiors of the others.
double HaloBuilder::number_of_transfers() const {
  double inside = 1;  // products without ghosts
  double all = 1;
  double of_faces = 0;
  for (const auto& segments : segments_) {
    const auto ghosts = static_cast<double>(std::ranges::count_if(segments, &AxisSegment::ghost));
    const double interiors = static_cast<double>(segments.size()) - ghosts;
    of_faces = of_faces * interiors + inside * ghosts;
    inside *= interiors;
    all *= interiors + ghosts;
  }
  return (spec_.corners ? all - inside : of_faces) * static_cast<double>(spec_.element_bytes.size());
}

void HaloBuilder::add_piece(const Segments& segments, std::vector<Piece>& pieces) const {
  Piece piece;
  piece.from = rank_of(segments, &AxisSegment::from);
  piece.to = rank_of(segments, &AxisSegment::to);
  std::array<std::int64_t, max_halo_dims> extents{};
  std::array<std::int64_t, max_halo_dims> read_strides{};
  std::array<std::int64_t, max_halo_dims> write_strides{};
  std::int64_t read_offset = 0;
  std::int64_t write_offset = 0;
  std::int64_t read_stride = 1;
  std::int64_t write_stride = 1;
  for (std::size_t d = dims(); d-- > 0;) {
    const Axis& axis = axes_[d];
    const AxisSegment& segment = *segments[d];
    extents[d] = segment.length;
    read_strides[d] = read_stride;
    write_strides[d] = write_stride;
    read_offset += segment.from_start * read_stride;
    write_offset += segment.to_start * write_stride;
    read_stride *= axis.below + axis.size_of(segment.from) + axis.above;
    write_stride *= axis.below + axis.size_of(segment.to) + axis.above;
    piece.key[d] = static_cast<std::int32_t>(segments[d] - segments_[d].data());
  }
  piece.read = Slice::box(read_offset, {extents.data(), dims()}, {read_strides.data(), dims()});
  piece.write = Slice::box(write_offset, {extents.data(), dims()}, {write_strides.data(), dims()});
  pieces.push_back(std::move(piece));
}

void HaloBuilder::add_pieces(int rank, bool as_sender, std::vector<Piece>& pieces) const {
  const auto coords = coords_of(rank);
  Segments chosen{};
  const auto choose = [&](auto&& self, std::size_t d, std::size_t ghosts) -> void {
    if (d == dims()) {
      if (ghosts > 0) add_piece(chosen, pieces);
      return;
    }
    for (const AxisSegment* segment : (as_sender ? sent_ : received_)[d][static_cast<std::size_t>(coords[d])]) {
      if (segment->ghost && ghosts > 0 && !spec_.corners) continue;
      chosen[d] = segment;
      self(self, d + 1, ghosts + segment->ghost);
    }
  };
  choose(choose, 0, 0);
}

void HaloBuilder::add_transfers(std::vector<Piece>& pieces, std::vector<Transfer>& transfers) const {
  std::vector<std::size_t> order(pieces.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tie(pieces[i].from, pieces[i].to, pieces[i].key); });
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    const Piece& first = pieces[order[begin]];
    while (end < order.size() && pieces[order[end]].from == first.from && pieces[order[end]].to == first.to) ++end;
    for (int field = 0; field < static_cast<int>(spec_.element_bytes.size()); ++field) {
      for (std::size_t i = begin; i < end; ++i) {
        const Piece& piece = pieces[order[i]];
        transfers.push_back(
            {{piece.from, field, piece.read}, {piece.to, field, piece.write}, Combine::replace, spec_.codec});
      }
    }
    begin = end;
  }
}

// In each dimension the written positions are contiguous around the interior: all but the ghosts beyond an open end.
AxisRange HaloBuilder::written_range(std::size_t d, int block) const {
  const Axis& axis = axes_[d];
  const std::int64_t start = axis.start_of(block);
  const std::int64_t size = axis.size_of(block);
  if (axis.extent == 0) return {axis.below, axis.below};
  if (axis.periodic) return {0, axis.below + size + axis.above};
  return {axis.below - std::min(start, axis.below),
          axis.below + size + std::min(axis.extent - start - size, axis.above)};
}

// Adds two boxes per dimension, the ghosts below and above. With corners, a box includes the ghosts of later dimensions
// but not those of earlier ones, so that the boxes are disjoint and cover the whole shell.
void HaloBuilder::add_must_cover(int rank, std::vector<Place>& places) const {
  const HaloBlock block = this->block(rank);
  std::vector<AxisRange> inside(dims());
  std::vector<AxisRange> written(dims());
  for (std::size_t d = 0; d < dims(); ++d) {
    inside[d] = {axes_[d].below, axes_[d].below + block.extents[d]};
    written[d] = written_range(d, block.coords[d]);
  }
  std::vector<std::int64_t> start(dims());
  std::vector<std::int64_t> extents(dims());
  for (int field = 0; field < static_cast<int>(spec_.element_bytes.size()); ++field) {
    for (std::size_t d = 0; d < dims(); ++d) {
      for (const AxisRange ghosts :
           {AxisRange{written[d].first, inside[d].first}, AxisRange{inside[d].last, written[d].last}}) {
        for (std::size_t e = 0; e < dims(); ++e) {
          const AxisRange range = e == d ? ghosts : e > d && spec_.corners ? written[e] : inside[e];
          start[e] = range.first;
          extents[e] = range.last - range.first;
        }
        const Slice slice = Slice::subarray(block.shape, start, extents);
        if (slice.elements() > 0) places.push_back({rank, field, slice});
      }
    }
  }
}

Schedule HaloBuilder::build(std::optional<int> only_rank) {
  if (only_rank) (void)block(*only_rank);
  Schedule schedule{"halo", ranks_, array_specs(), {Round{}}, {}};
  index_segments();
  detail::check_fits("halo", number_of_transfers() * (only_rank ? 2.0 / ranks_ : 1));
  auto& transfers = schedule.rounds.front().transfers;
  std::vector<Piece> pieces;
  if (only_rank) {
    add_pieces(*only_rank, true, pieces);
    const auto sent = static_cast<std::ptrdiff_t>(pieces.size());
    add_pieces(*only_rank, false, pieces);
    // Copies inside the rank occur both as sent and as received pieces; keep the former.
    const auto received =
        std::remove_if(pieces.begin() + sent, pieces.end(), [](const Piece& piece) { return piece.from == piece.to; });
    pieces.erase(received, pieces.end());
    add_transfers(pieces, transfers);
    add_must_cover(*only_rank, schedule.must_cover);
    return schedule;
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    pieces.clear();
    add_pieces(rank, true, pieces);
    add_transfers(pieces, transfers);
    add_must_cover(rank, schedule.must_cover);
  }
  return schedule;
}

}  // namespace

HaloBlock halo_block(const HaloSpec& spec, int rank) { return HaloBuilder(spec).block(rank); }

Schedule halo(const HaloSpec& spec, std::optional<int> only_rank) { return HaloBuilder(spec).build(only_rank); }

}  // namespace onehop
