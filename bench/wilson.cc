#include "wilson.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <random>
#include <type_traits>
#include <utility>

#include "onehop/error.h"
#include "onehop/lattice/clover.h"
#include "onehop/lattice/gauge.h"
#include "team.h"
#include "wilson_core.h"

namespace onehop::bench {
namespace {

using lattice::WilsonForm;
using lattice::detail::Buffer;
using lattice::detail::Team;
using lattice::detail::WilsonCore;
using lattice::detail::WilsonStorage;

template <class T>
Buffer<T> random_numbers(std::size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> even(-1, 1);
  Buffer<T> found(count);
  for (T& x : found.span()) x = static_cast<T>(even(random));
  return found;
}

// Reads all of it with several streams at once, as fast as it comes.
double read_all(const double* from, std::size_t count) {
  constexpr std::size_t line = 8;
  typedef double Line __attribute__((vector_size(line * sizeof(double))));
  Line sums[4]{};
  const std::size_t quarter = count / 4 / line * line;
  for (std::size_t i = 0; i < quarter; i += line) {
    for (std::size_t s = 0; s < 4; ++s) {
      Line next;
      __builtin_memcpy(&next, from + s * quarter + i, sizeof next);
      sums[s] += next;
    }
  }
  const Line all = sums[0] + sums[1] + sums[2] + sums[3];
  double sum = 0;
  for (std::size_t i = 0; i < line; ++i) sum += all[i];
  return sum;
}

template <class T>
std::vector<Samples> measured(const Group& group, const WilsonBenchOptions& options) {
  const std::vector<std::int64_t> extents(options.extents.begin(), options.extents.end());
  const std::vector<int> grid(options.grid.begin(), options.grid.end());
  lattice::Gauge gauge(group, extents, grid);
  gauge.set_random(1);
  lattice::GeometrySpec spec = gauge.geometry().spec();
  spec.colours = 2;
  spec.lanes = geometry_lanes(spec, lattice::detail::wilson_lanes<T>());
  WilsonStorage<T> storage(group, lattice::Geometry(spec), gauge.links(), options.two_rows, true);
  if (options.clover) {
    const auto blocks = lattice::clover_blocks(lattice::clover_leaves(gauge), 0.13);
    storage.set_clover(blocks, lattice::inverse_blocks(blocks));
  }
  Team team(options.threads > 0 ? options.threads : lattice::detail::team_size(group));
  WilsonCore<T> core(storage, team, 1);
  const Buffer<T> fields[2] = {random_numbers<T>(core.size(0)), random_numbers<T>(core.size(1))};
  const typename WilsonCore<T>::Tail tail{
      .form = options.clover ? WilsonForm::clover : WilsonForm::plain, .factor = 0.1, .inverse = true};
  const Buffer<T> results[2] = {Buffer<T>(core.size(0)), Buffer<T>(core.size(1))};
  const auto apply = [&](bool alone) {
    return [&, alone](int times) {
      core.alone = alone;
      for (int i = 0; i < times; ++i) {
        core.hop(1, fields[0].data(), results[1].data(), tail);
        core.hop(0, fields[1].data(), results[0].data(), tail);
      }
    };
  };
  const Buffer<double> memory(static_cast<std::size_t>(wilson_work(options).bytes / sizeof(double)));
  std::atomic<double> sink{0};
  std::vector<Contestant> contestants;
  contestants.push_back({"onehop", Role::ours, apply(false), 0.5});
  if (group.size() > 1) contestants.push_back({"onehop, without faces", Role::variant, apply(true), 0.5});
  contestants.push_back({"limit: reading as many bytes", Role::limit, [&](int times) {
                           const auto count = static_cast<std::int64_t>(memory.size());
                           for (int i = 0; i < times; ++i) {
                             team.run([&](int thread) {
                               const auto [first, last] = team.part(0, count, thread);
                               sink = read_all(memory.data() + first, static_cast<std::size_t>(last - first));
                             });
                           }
                         }});
  Arena arena(group);
  return run_rounds(arena, contestants, options.effort);
}

}  // namespace

WilsonWork wilson_work(const WilsonBenchOptions& options) {
  double sites = 0.5;
  for (std::size_t d = 0; d < 4; ++d) sites *= static_cast<double>(options.extents[d]) / options.grid[d];
  const double numbers = 8 * (options.two_rows ? 12 : 18) + 3 * 24 + (options.clover ? 72 : 0);
  return {sites * (1320 + (options.clover ? 504 : 0)), sites * numbers * (options.single ? 4 : 8)};
}

std::vector<Samples> wilson(const Group& group, const WilsonBenchOptions& options) {
  return options.single ? measured<float>(group, options) : measured<double>(group, options);
}

}  // namespace onehop::bench
