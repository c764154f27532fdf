// The order of the parts of a block in memory. A part is the interior, or the sites at certain edges of the block.
#pragma once

#include <array>
#include <vector>

namespace onehop::lattice::detail {

// The position of a part in a direction: at neither end, at the lower end or at the upper end.
enum class Edge : unsigned char { middle = 0, low = 1, high = 2 };
using Part = std::array<Edge, 4>;

// Returns all parts of a block that is cut in these directions, the interior first, in an order that keeps the number
// of contiguous pieces per face small, smallest for the directions named first. In other directions every part is
// `middle`.
[[nodiscard]] std::vector<Part> face_order(const std::vector<int>& cut);

}  // namespace onehop::lattice::detail
