// The order of the parts of a block: what is not at an edge, and what is at which edges.
#pragma once

#include <array>
#include <vector>

namespace onehop::lattice::detail {

// Where a part lies, per direction: at neither end, at the lower, at the upper.
enum class Edge : unsigned char { middle = 0, low = 1, high = 2 };
using Part = std::array<Edge, 4>;

// All parts of a block that is cut in these directions, the interior first, in an order in which as few faces as can be are in
// more than one piece; the directions named first get the fewest. In other directions every part is in the middle.
[[nodiscard]] std::vector<Part> face_order(const std::vector<int>& cut);

}  // namespace onehop::lattice::detail
