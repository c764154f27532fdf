// Ghost layers of a three-dimensional array. Try: onehop launch -n 2 ./halo
#include <array>
#include <cstdio>
#include <span>
#include <vector>

#include "onehop/count.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"

int main() {
  const onehop::Group group = onehop::Group::world();
  const onehop::HaloSpec spec{.extents = {16 * group.size(), 8, 8},
                              .grid = {group.size(), 1, 1},
                              .widths = {{1, 1}, {1, 1}, {1, 1}},
                              .periodic = {true, true, true}};
  const onehop::HaloBlock block = onehop::halo_block(spec, group.rank());
  std::vector<double> field(static_cast<std::size_t>(block.shape[0] * block.shape[1] * block.shape[2]), group.rank());

  const onehop::Schedule schedule = onehop::halo(spec);  // plain data: the same on every rank, no communication
  onehop::Plan plan(group, schedule, std::array{std::as_writable_bytes(std::span(field))});
  plan.start();
  // ... here the interior is updated, which needs no neighbour ...
  plan.finish();

  const auto ghost = static_cast<std::size_t>(block.shape[2] + 1);  // site (-1, 0, 0)
  const int below = (group.rank() + group.size() - 1) % group.size();
  std::printf("rank %d: ghost %g, %lld bytes between ranks\n", group.rank(), field[ghost],
              static_cast<long long>(onehop::count(schedule).bytes));
  return field[ghost] == below ? 0 : 1;
}
