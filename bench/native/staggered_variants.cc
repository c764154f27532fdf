// `onehop bench solver`: the staggered operator with onehop's communication or kernels replaced by others.
#include <memory>
#include <string>
#include <utility>

#include "bench/native/benchmarks.h"
#include "bench/native/mpi/faces.h"
#include "lattice/staggered/staggered_solver.h"

namespace onehop::bench {

lattice::Staggered staggered_variant(std::string_view name, const Group& group, std::vector<std::int64_t> extents,
                                     std::vector<int> grid, std::span<const std::complex<double>> fat_links,
                                     std::span<const std::complex<double>> long_links, int threads) {
  lattice::detail::StaggeredParts parts;
  lattice::StaggeredOptions options;
  options.threads = threads;
  if (name == "scalar") {
    options.lanes = 1;
    parts.plain = true;
  } else if (name == "MPI") {
    if (const std::string why = why_no_mpi_peers(group); !why.empty()) throw Error("no MPI to compare with: " + why);
    parts.exchange = [group](const lattice::Geometry& geometry, std::int64_t bytes, std::span<std::byte> field) {
      return std::make_unique<MpiFaces>(group, geometry, bytes, field);
    };
    const std::shared_ptr<MpiWorld> world = MpiWorld::make();
    parts.sum = [world](std::span<double> numbers) { world->allreduce_sum(numbers); };
  } else {
    throw BadInput("expected MPI or scalar, found '" + std::string(name) + "'");
  }
  return {group, std::move(extents), std::move(grid), fat_links, long_links, options, parts};
}

}  // namespace onehop::bench
