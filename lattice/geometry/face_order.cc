// Faces of different directions share the edges of the block. The four faces of two directions form a ring, which
// memory order must cut open somewhere: three of them stay contiguous, the fourth has two pieces. A third direction
// divides every part of that ring in three; traversing these alternately up and down joins its faces at every other
// place where two parts of the ring meet.
#include "lattice/geometry/face_order.h"

#include <algorithm>
#include <utility>

namespace onehop::lattice::detail {

namespace {

using enum Edge;

constexpr std::array<std::pair<Edge, Edge>, 9> ring{{{middle, middle},
                                                     {middle, low},
                                                     {low, low},
                                                     {low, middle},
                                                     {low, high},
                                                     {middle, high},
                                                     {high, high},
                                                     {high, middle},
                                                     {high, low}}};

std::vector<Part> refined(const std::vector<Part>& parts, std::size_t direction) {
  std::vector<Part> result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::array<Edge, 3> along = i == 0 ? std::array{middle, low, high} : std::array{high, middle, low};
    if (i > 0 && i % 2 == 0) std::ranges::reverse(along);
    for (const Edge edge : along) {
      Part part = parts[i];
      part[direction] = edge;
      result.push_back(part);
    }
  }
  return result;
}

}  // namespace

std::vector<Part> face_order(const std::vector<int>& cut) {
  std::vector<Part> parts{Part{}};
  std::size_t done = 0;
  if (cut.size() >= 2) {
    parts.clear();
    for (const auto& [first, second] : ring) {
      Part part{};
      part[static_cast<std::size_t>(cut[0])] = first;
      part[static_cast<std::size_t>(cut[1])] = second;
      parts.push_back(part);
    }
    done = 2;
  }
  for (; done < cut.size(); ++done) parts = refined(parts, static_cast<std::size_t>(cut[done]));
  return parts;
}

}  // namespace onehop::lattice::detail
