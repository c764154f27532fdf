// Cuts messages so that the rails finish together. It starts from whole messages, and moves the ends of long messages
// from rails that finish late to those that finish early, so that few messages are cut.
#include <algorithm>
#include <numeric>
#include <optional>

#include "machine/rails/problem.h"

namespace onehop::detail {

namespace {

constexpr int bisection_steps = 50;

CutPieces whole_pieces(const RailProblem& problem, const RailChoice& choice) {
  CutPieces pieces(problem.speeds.size());
  for (std::size_t i = 0; i < choice.size(); ++i) {
    pieces[static_cast<std::size_t>(choice[i])].push_back({i, 0, problem.sizes[i]});
  }
  return pieces;
}

// Brings every rail down to its capacity.
class Levelling {
 public:
  Levelling(CutPieces pieces, std::vector<std::int64_t> loads, std::vector<std::int64_t> capacities,
            std::int64_t min_piece)
      : pieces_(std::move(pieces)),
        loads_(std::move(loads)),
        capacities_(std::move(capacities)),
        min_piece_(min_piece) {}

  // Returns nothing if it does not succeed.
  std::optional<CutPieces> run() {
    // Each step empties a piece, satisfies a rail or fills one.
    std::size_t steps = 4 * loads_.size();
    for (const auto& held : pieces_) steps += 2 * held.size();
    for (std::size_t rail = 0; rail < loads_.size(); ++rail) {
      while (loads_[rail] > capacities_[rail]) {
        if (steps-- == 0 || !relieve(rail)) return std::nullopt;
      }
    }
    return std::move(pieces_);
  }

 private:
  [[nodiscard]] std::int64_t room(std::size_t rail) const { return capacities_[rail] - loads_[rail]; }

  // Moves one piece, or the end of one, to the rail with the most room.
  bool relieve(std::size_t rail) {
    std::size_t target = 0;
    for (std::size_t other = 1; other < loads_.size(); ++other) {
      if (room(other) > room(target)) target = other;
    }
    const std::int64_t excess = -room(rail);
    const std::int64_t space = room(target);
    const std::int64_t wanted = std::max(std::min(excess, space), min_piece_);
    std::vector<CutPiece>& held = pieces_[rail];
    const auto longest = std::ranges::max_element(held, {}, &CutPiece::bytes);
    if (longest == held.end()) return false;
    std::int64_t moved = wanted;
    if (longest->bytes - moved < min_piece_) moved = longest->bytes - min_piece_;
    if (moved < min_piece_ || moved > space || (moved < wanted && moved < excess && longest->bytes <= space)) {
      return move_whole(rail, target);
    }
    longest->bytes -= moved;
    pieces_[target].push_back({longest->message, longest->first + longest->bytes, moved});
    loads_[rail] -= moved;
    loads_[target] += moved;
    return true;
  }

  // Moves the longest piece that the target has room for.
  bool move_whole(std::size_t rail, std::size_t target) {
    std::vector<CutPiece>& held = pieces_[rail];
    auto chosen = held.end();
    for (auto piece = held.begin(); piece != held.end(); ++piece) {
      if (piece->bytes <= room(target) && (chosen == held.end() || piece->bytes > chosen->bytes)) chosen = piece;
    }
    if (chosen == held.end()) return false;
    loads_[rail] -= chosen->bytes;
    loads_[target] += chosen->bytes;
    pieces_[target].push_back(*chosen);
    held.erase(chosen);
    return true;
  }

  CutPieces pieces_;
  std::vector<std::int64_t> loads_;
  std::vector<std::int64_t> capacities_;
  std::int64_t min_piece_;
};

std::vector<std::int64_t> loads_of(const CutPieces& pieces) {
  std::vector<std::int64_t> loads;
  for (const auto& held : pieces) {
    loads.push_back(std::accumulate(held.begin(), held.end(), std::int64_t{0},
                                    [](std::int64_t sum, const CutPiece& piece) { return sum + piece.bytes; }));
  }
  return loads;
}

}  // namespace

CutPieces cut_choice(const RailProblem& problem, const RailChoice& choice, std::int64_t min_piece) {
  const std::vector<std::int64_t> loads = rail_loads(problem, choice);
  const auto levelled = [&](double seconds) {
    std::vector<std::int64_t> capacities;
    for (const double speed : problem.speeds) capacities.push_back(rail_capacity(seconds, speed));
    return Levelling(whole_pieces(problem, choice), loads, std::move(capacities), min_piece).run();
  };
  CutPieces best = whole_pieces(problem, choice);
  double low = area_bound(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}), problem.speeds);
  double high = busiest_rail(loads, problem.speeds);
  for (int step = 0; step < bisection_steps && low < high; ++step) {
    const double middle = step == 0 ? low : std::midpoint(low, high);
    std::optional<CutPieces> found = levelled(middle);
    if (found) {
      best = std::move(*found);
      high = busiest_rail(loads_of(best), problem.speeds);
    } else {
      low = middle;
    }
  }
  return best;
}

}  // namespace onehop::detail
