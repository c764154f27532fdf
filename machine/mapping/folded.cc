// Equal boxes, whose grid is folded into a torus of hosts. Every dimension of the grid of boxes gets factors of the
// torus dimensions, whose product is its extent: 8 boxes become a ring in a torus of 4x2, in which all neighbours are
// one hop apart. Neighbours in one dimension differ only in the factors of this dimension, so the hops of each
// dimension are minimal or not by themselves.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "machine/mapping/published.h"

namespace onehop::detail {

namespace {

constexpr std::int64_t most_work = 4'000'000;  // hops to look up
constexpr std::size_t most_permuted = 4;       // factors of one dimension, in any order

// A part of a torus dimension: coordinates 0, stride, 2 stride, ... (extent of them).
struct Factor {
  std::size_t dimension = 0;
  std::int64_t extent = 1;
  std::int64_t stride = 1;
  friend auto operator<=>(const Factor&, const Factor&) = default;
};
using Factors = std::vector<Factor>;

// Places of the torus in the order of the boxes along one dimension, and the hops between neighbours.
struct Line {
  std::int64_t hops = 0;
  std::vector<std::int64_t> places;
};

// Walks through all combinations of digits.
class Walk {
 public:
  enum class Kind { reflected, modular, comb };

  Walk(const Factors& factors, Kind kind) : factors_(factors), kind_(kind) {
    for (const Factor& factor : factors) length_ *= factor.extent;
  }

  // The comb needs an even number of teeth.
  [[nodiscard]] static bool exists(const Factors& factors, Kind kind) {
    return factors.size() > 1 ? kind != Kind::comb || factors.front().extent % 2 == 0 : kind == Kind::reflected;
  }

  // Digit k of number n on the walk; digit 0 runs slowest.
  void digits(std::int64_t n, std::span<std::int64_t> digit) const {
    switch (kind_) {
      case Kind::reflected:
        return reflected(0, length_, n, digit);
      case Kind::modular:
        return modular(n, digit);
      case Kind::comb:
        return comb(n, digit);
    }
  }

 private:
  // Every digit runs up and down in turn (a reflected Gray code): neighbours differ by one in one digit.
  void reflected(std::size_t first, std::int64_t length, std::int64_t n, std::span<std::int64_t> digit) const {
    std::int64_t sweep = length;  // numbers in a sweep of this digit
    for (std::size_t k = first; k < factors_.size(); ++k) {
      const std::int64_t step = sweep / factors_[k].extent;
      digit[k] = n % sweep / step;
      if (n / sweep % 2 != 0) digit[k] = factors_[k].extent - 1 - digit[k];
      sweep = step;
    }
  }

  // Every digit goes on where it stopped: for rings of odd extents.
  void modular(std::int64_t n, std::span<std::int64_t> digit) const {
    std::int64_t step = length_;
    std::int64_t before = 0;
    for (std::size_t k = 0; k < factors_.size(); ++k) {
      const std::int64_t extent = factors_[k].extent;
      step /= extent;
      const std::int64_t plain = n / step % extent;
      digit[k] = (plain - before % extent + extent) % extent;
      before = plain;
    }
  }

  // A closed walk: up and down through all but the first combination of the faster digits, and back through that one.
  void comb(std::int64_t n, std::span<std::int64_t> digit) const {
    const std::int64_t teeth = factors_.front().extent;
    const std::int64_t tooth = length_ / teeth;
    std::int64_t other = 0;
    if (n < teeth * (tooth - 1)) {
      digit[0] = n / (tooth - 1);
      other = n % (tooth - 1) + 1;
      if (digit[0] % 2 != 0) other = tooth - other;
    } else {
      digit[0] = teeth * tooth - 1 - n;
    }
    reflected(1, tooth, other, digit);
  }

  const Factors& factors_;
  Kind kind_;
  std::int64_t length_ = 1;
};

class Folding {
 public:
  Folding(const GridShape& shape, std::span<const std::int64_t> torus) : shape_(shape), torus_(torus) {
    strides_.resize(torus.size(), 1);
    for (std::size_t d = torus.size(); d-- > 1;) strides_[d - 1] = strides_[d] * torus[d];
  }

  // Compares all ways to fold boxes with these edges.
  void try_boxes(const std::vector<std::int64_t>& edges) {
    edges_ = edges;
    boxes_.clear();
    for (std::size_t d = 0; d < shape_.dims(); ++d) boxes_.push_back(shape_.extents()[d] / edges[d]);
    const std::int64_t all = std::accumulate(boxes_.begin(), boxes_.end(), std::int64_t{1}, std::multiplies{});
    weights_.clear();
    for (std::size_t d = 0; d < shape_.dims(); ++d) {
      weights_.push_back(shape_.positions() / all / edges[d] * shape_.bytes()[d] * (all / boxes_[d]));
    }
    factors_.assign(shape_.dims(), {});
    left_ = boxes_;
    choose(0, torus_.empty() ? 1 : torus_.front(), 0);
  }

  [[nodiscard]] std::optional<HostAt> host_at() const {
    if (best_places_.empty()) return std::nullopt;
    HostAt host_at;
    host_at.reserve(static_cast<std::size_t>(shape_.positions()));
    std::vector<std::int64_t> at(shape_.dims(), 0);
    for (std::int64_t p = 0; p < shape_.positions(); ++p) {
      std::int64_t place = 0;
      for (std::size_t d = 0; d < shape_.dims(); ++d) {
        place += best_places_[d][static_cast<std::size_t>(at[d] / best_edges_[d])];
      }
      host_at.push_back(static_cast<int>(place));
      shape_.advance(at);
    }
    return host_at;
  }

 private:
  // Divides what is left of torus dimension t, whose larger factors have been taken by the dimensions in `taken`, among
  // the others. The largest factors come first, so that whole dimensions are tried before divided ones.
  void choose(std::size_t t, std::int64_t rest, unsigned taken) {
    if (work_ > most_work) return;
    if (t == torus_.size()) return compare();
    if (rest == 1) return choose(t + 1, t + 1 < torus_.size() ? torus_[t + 1] : 1, 0);
    for (std::int64_t extent = rest; extent > 1; --extent) {
      if (rest % extent != 0) continue;
      for (std::size_t d = 0; d < left_.size(); ++d) {
        ++work_;
        if ((taken >> d & 1U) != 0 || left_[d] % extent != 0) continue;
        left_[d] /= extent;
        factors_[d].push_back({t, extent, rest / extent});
        choose(t, rest / extent, taken | 1U << d);
        factors_[d].pop_back();
        left_[d] *= extent;
      }
    }
  }

  void compare() {
    std::int64_t cost = 0;
    std::vector<const Line*> lines;
    for (std::size_t d = 0; d < factors_.size(); ++d) {
      lines.push_back(&line(factors_[d], shape_.periodic(d)));
      cost += weights_[d] * lines.back()->hops;
      if (!best_places_.empty() && cost >= best_cost_) return;
    }
    best_cost_ = cost;
    best_edges_ = edges_;
    best_places_.clear();
    for (const Line* each : lines) best_places_.push_back(each->places);
  }

  const Line& line(const Factors& factors, bool closed) {
    const auto [found, is_new] = lines_.try_emplace({factors, closed});
    if (is_new) found->second = shortest(factors, closed);
    return found->second;
  }

  Line shortest(Factors factors, bool closed) {
    Line best{-1, {}};
    std::ranges::sort(factors);
    do {
      for (const Walk::Kind kind : {Walk::Kind::reflected, Walk::Kind::modular, Walk::Kind::comb}) {
        if (!Walk::exists(factors, kind)) continue;
        Line line = walk(factors, Walk(factors, kind), closed);
        if (best.hops < 0 || line.hops < best.hops) best = std::move(line);
      }
    } while (factors.size() <= most_permuted && std::ranges::next_permutation(factors).found);
    return best;
  }

  Line walk(const Factors& factors, const Walk& walk, bool closed) {
    std::int64_t length = 1;
    for (const Factor& factor : factors) length *= factor.extent;
    Line line;
    std::vector<std::int64_t> digit(factors.size());
    for (std::int64_t n = 0; n < length; ++n) {
      walk.digits(n, digit);
      std::int64_t place = 0;
      for (std::size_t k = 0; k < factors.size(); ++k) {
        place += digit[k] * factors[k].stride * strides_[factors[k].dimension];
      }
      line.places.push_back(place);
      if (n > 0) line.hops += hops(line.places[static_cast<std::size_t>(n - 1)], place);
    }
    if (closed) line.hops += hops(line.places.back(), line.places.front());
    work_ += length;
    return line;
  }

  [[nodiscard]] std::int64_t hops(std::int64_t a, std::int64_t b) const {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < torus_.size(); ++d) {
      const std::int64_t apart = std::abs(a / strides_[d] % torus_[d] - b / strides_[d] % torus_[d]);
      sum += std::min(apart, torus_[d] - apart);
    }
    return sum;
  }

  const GridShape& shape_;
  std::span<const std::int64_t> torus_;
  std::vector<std::int64_t> strides_;  // of the torus
  std::vector<std::int64_t> edges_;
  std::vector<std::int64_t> boxes_;    // per dimension of the grid
  std::vector<std::int64_t> weights_;  // bytes one way for a hop along each dimension
  std::vector<Factors> factors_;       // of each dimension of the grid
  std::vector<std::int64_t> left_;     // boxes per dimension over the factors chosen
  std::map<std::pair<Factors, bool>, Line> lines_;
  std::int64_t work_ = 0;
  std::int64_t best_cost_ = 0;
  std::vector<std::int64_t> best_edges_;
  std::vector<std::vector<std::int64_t>> best_places_;
};

}  // namespace

std::optional<HostAt> folded_boxes(const GridShape& shape, Sizes sizes, std::span<const std::int64_t> torus) {
  Folding folding(shape, torus);
  for (const std::vector<std::int64_t>& edges : best_edges(shape, sizes.front())) folding.try_boxes(edges);
  return folding.host_at();
}

}  // namespace onehop::detail
