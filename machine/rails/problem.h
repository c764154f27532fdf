// The assignment problem without ranks: sizes and speeds. A solution names the rail of every message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace onehop::detail {

// The messages of one host as sizes, all above 0. Speeds are in the order of the rails.
struct RailProblem {
  std::vector<std::int64_t> sizes;
  std::vector<double> speeds;
};

using RailChoice = std::vector<int>;  // the rail of each message

[[nodiscard]] std::vector<std::int64_t> rail_loads(const RailProblem& problem, const RailChoice& choice);
[[nodiscard]] double busiest_rail(std::span<const std::int64_t> loads, std::span<const double> speeds);

// The most bytes that a rail of this speed carries within `seconds`, by the same rounding as `busiest_rail`.
[[nodiscard]] std::int64_t rail_capacity(double seconds, double speed);

// The earliest time at which all rails together can have carried `total` bytes, in whole bytes.
[[nodiscard]] double area_bound(std::int64_t total, std::span<const double> speeds);

// A lower bound for whole messages.
[[nodiscard]] double whole_bound(const RailProblem& problem);

// Returns a choice with the least busy rail, or nothing if the search would take more than `limit` steps. Twelve
// different messages take 5 million on any number of rails.
[[nodiscard]] std::optional<RailChoice> exact_choice(const RailProblem& problem, double limit);

// Each message, longest first, on the rail that finishes it first.
[[nodiscard]] RailChoice longest_first_choice(const RailProblem& problem);

// The better of longest first and multifit, improved by a local search.
[[nodiscard]] RailChoice searched_choice(const RailProblem& problem);

// A part of a message on a rail.
struct CutPiece {
  std::size_t message = 0;
  std::int64_t first = 0;
  std::int64_t bytes = 0;
};

using CutPieces = std::vector<std::vector<CutPiece>>;  // one list per rail

// Cuts messages of a choice so that the busiest rail finishes earlier. Returns whole messages if no cut helps.
[[nodiscard]] CutPieces cut_choice(const RailProblem& problem, const RailChoice& choice, std::int64_t min_piece);

}  // namespace onehop::detail
