#include "wilson.h"

#include <algorithm>
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

// Reads all of `from` in four streams and writes all of `to`, evenly mixed: pieces of some cache lines of either in turn. One stream
// alone would be slower than this machine can be.
void move_all(const double* from, std::int64_t read, double* to, std::int64_t written) {
  constexpr std::int64_t piece = 128;
  typedef double Line __attribute__((vector_size(8 * sizeof(double))));
  Line sums[8]{};
  std::int64_t out = 0;
  const std::int64_t quarter = read / 4 / piece * piece;
  for (std::int64_t at = 0; at < quarter; at += piece) {
    for (std::int64_t i = at; i < at + piece; i += 16) {
      for (std::int64_t s = 0; s < 8; ++s) {
        Line next;
        __builtin_memcpy(&next, from + s / 2 * quarter + i + s % 2 * 8, sizeof next);
        sums[s] += next;
      }
    }
    const std::int64_t until = written * (at + piece) / quarter / 8 * 8;
    for (; out < until; out += 8) __builtin_memcpy(to + out, &sums[out / 8 % 8], sizeof(Line));
  }
  __asm__ volatile("" : : "m"(sums) : "memory");
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
  // As much memory as the applications to both colours have, so that none of it is in a cache where theirs is not.
  const auto count = static_cast<std::int64_t>(2 * wilson_work(options).bytes / sizeof(double));
  const auto written = static_cast<std::int64_t>(core.size(0) + core.size(1)) * static_cast<std::int64_t>(sizeof(T)) /
                       static_cast<std::int64_t>(sizeof(double));
  const std::int64_t read = count - 2 * written;  // a line that is written is read before
  const Buffer<double> from(static_cast<std::size_t>(read));
  const Buffer<double> to(static_cast<std::size_t>(written));
  std::vector<Contestant> contestants;
  contestants.push_back({"onehop", Role::ours, apply(false), 0.5});
  if (group.size() > 1) contestants.push_back({"onehop, without faces", Role::variant, apply(true), 0.5});
  contestants.push_back({"reading as many bytes", Role::variant,
                         [&](int times) {
                           for (int i = 0; i < times; ++i) {
                             team.run([&](int thread) {
                               const auto [first, last] = team.part(0, read / 8, thread);
                               move_all(from.data() + 8 * first, 8 * (last - first), nullptr, 0);
                             });
                           }
                         },
                         0.5 * static_cast<double>(count) / static_cast<double>(read)});
  contestants.push_back({"limit: moving as many bytes", Role::limit,
                         [&](int times) {
                           for (int i = 0; i < times; ++i) {
                             team.run([&](int thread) {
                               const auto [first, last] = team.part(0, read / 8, thread);
                               const auto [begin, end] = team.part(0, written / 8, thread);
                               move_all(from.data() + 8 * first, 8 * (last - first), to.data() + 8 * begin,
                                        8 * (end - begin));
                             });
                           }
                         },
                         0.5});
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
