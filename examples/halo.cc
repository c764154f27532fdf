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
  const onehop::HaloSpec spec{.extents = {128, 64, 64},
                              .grid = {group.size(), 1, 1},
                              .widths = {{1, 1}, {1, 1}, {1, 1}},
                              .periodic = {true, true, true}};
  const onehop::Schedule schedule = onehop::halo(spec);  // plain data, the same on every rank
  // The field includes its ghosts. The plan is prepared once.
  std::vector<double> field(schedule.arrays[0].elements_on(group.rank()), group.rank());
  onehop::Plan plan(group, schedule, std::array{std::as_writable_bytes(std::span(field))});
  for (int step = 0; step < 100; ++step) {
    plan.start();  // begins the exchange of the faces
    // Update the interior here; it needs no neighbour.
    plan.finish();  // the ghosts are valid
  }

  // The ghost at site (-1, 0, 0) holds the number of the rank below.
  const auto ghost = static_cast<std::size_t>(onehop::halo_block(spec, group.rank()).shape[2] + 1);
  const int below = (group.rank() + group.size() - 1) % group.size();
  const long long sent = onehop::count(schedule).ranks[static_cast<std::size_t>(group.rank())].bytes_sent;
  std::printf("rank %d sends %lld bytes per step and has rank %g below it\n", group.rank(), sent, field[ghost]);
  return field[ghost] == below ? 0 : 1;
}
