// The part of a machine that a job gets.
#include <algorithm>
#include <limits>

#include "onehop/error.h"
#include "onehop/machine/machine.h"
#include "src/base/text.h"

namespace onehop {
namespace {

using Extents = std::vector<std::int64_t>;

// Chooses a box of the given extents with at least `needed` members: the fewest members first, then the best shape.
class BoxSearch {
 public:
  BoxSearch(const Level& level, std::int64_t needed) : level_(level), needed_(needed), box_(level.extents.size()) {}

  [[nodiscard]] Extents best() {
    search(0, 1);
    return best_;
  }

 private:
  void search(std::size_t dim, std::int64_t members) {
    const std::size_t dims = level_.extents.size();
    if (members > best_members_) return;
    if (dim + 1 == dims) {
      const std::int64_t last = (needed_ + members - 1) / members;
      if (last > level_.extents[dim]) return;
      box_[dim] = last;
      consider(members * last);
      return;
    }
    std::int64_t rest = 1;  // members of the dimensions that follow
    for (std::size_t d = dim + 1; d < dims; ++d) rest *= level_.extents[d];
    for (std::int64_t extent = level_.extents[dim]; extent >= 1; --extent) {
      if (members * extent * rest < needed_) break;
      box_[dim] = extent;
      search(dim + 1, members * extent);
    }
  }

  void consider(std::int64_t members) {
    const double shape = shape_cost();
    // Outside tori the search starts with the fullest lowest tiers, so the first of equal size stays.
    if (members > best_members_ || (members == best_members_ && shape >= best_shape_)) return;
    best_members_ = members;
    best_shape_ = shape;
    best_ = box_;
  }

  // The mean distance on a torus, in hops.
  [[nodiscard]] double shape_cost() const {
    if (level_.routing != Routing::torus) return 0;
    double hops = 0;
    for (const std::int64_t extent : box_) {
      const auto e = static_cast<double>(extent);
      hops += extent % 2 == 0 ? e / 4 : (e * e - 1) / (4 * e);
    }
    return hops;
  }

  const Level& level_;
  std::int64_t needed_;
  Extents box_;
  Extents best_;
  std::int64_t best_members_ = std::numeric_limits<std::int64_t>::max();
  double best_shape_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Machine Machine::job(std::int64_t processors) const {
  if (processors < 1 || processors > this->processors()) {
    throw BadInput("expected 1 to " + base::counted(this->processors(), "rank") + ", one per processor of " + name +
                   ", found " + std::to_string(processors) + "; `onehop machines` lists larger ones");
  }
  Machine part = *this;
  std::int64_t needed = processors;
  std::int64_t units = this->processors();  // of the level below
  for (std::size_t i = 0; i < levels.size(); ++i) {
    Level& level = part.levels[i];
    const std::int64_t members = level.members();
    units /= members;
    std::int64_t used = std::min(needed, members);
    while (needed > members && needed % used != 0 && 2 * used >= members) --used;
    // The outer levels must hold the rest.
    if (needed % used != 0 || 2 * used < members || needed > used * units) used = std::min(needed, members);
    const Extents box = BoxSearch(levels[i], used).best();
    // The switches keep their links.
    for (std::size_t tier = 0; tier < level.taper.size(); ++tier) {
      level.taper[tier] *= static_cast<double>(level.extents[tier]) / static_cast<double>(box[tier]);
    }
    level.extents = box;
    needed = (needed + used - 1) / used;
  }
  return part;
}

}  // namespace onehop
