// `onehop bench dslash`: the staggered hopping term with fat and long links, in several variants.
#include <complex>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "bench/native/bench.h"
#include "bench/native/face_clock.h"
#include "bench/native/mpi/faces.h"
#include "bench/native/read_all.h"
#include "lattice/staggered/dslash.h"
#include "lattice/staggered/staggered_solver.h"
#include "src/base/thread_count.h"

namespace onehop::bench {
namespace {

using lattice::Geometry;
using lattice::detail::Buffer;
using lattice::detail::DslashField;
using lattice::detail::DslashFieldOptions;
using lattice::detail::DslashLattice;
using lattice::detail::DslashLinks;
using lattice::detail::FaceExchange;
using Number = std::complex<double>;

class NoExchange final : public FaceExchange {
 public:
  void start(int) override {}
  void finish(int) override {}
};

// The four improvements of the staggered hopping term, each of which can be switched off.
struct DslashVariant {
  std::string name;
  Role role = Role::variant;
  bool simd = true;      // SIMD vectors of several sites; false: one site at a time
  bool put = true;       // faces written into the neighbour's memory; false: packed, MPI_Isend and MPI_Irecv, unpacked
  bool ordering = true;  // contiguous faces, interior computed while they travel; false: lexicographic, no overlap
  std::array<int, 4> grid{1, 1, 1, 1};
  bool faces = true;  // false: faces are not exchanged
};

struct DslashOptions {
  Effort effort;
  Extents extents{};  // of the whole lattice
  bool single = false;
  int threads = 0;  // per rank; 0: one per core of the rank
  std::vector<DslashVariant> variants;
};

// Per site 16 links, a vector that is read, and a vector that is read and written.
LatticeWork work_of(const DslashOptions& options, int ranks) {
  const double sites = 0.5 * sites_of_rank(options.extents, ranks);
  return {sites * 1146, sites * (16 * 18 + 3 * 6) * (options.single ? 4 : 8)};
}

// Links on one geometry, which several variants share.
template <class Real>
struct Storage {
  Storage(const Group& group, const DslashOptions& options, const DslashVariant& variant)
      : lattice(make(group, options, variant)) {
    if constexpr (std::is_same_v<Real, float>) {
      made = to_single(lattice.links);
      for (auto& kind : lattice.links.kinds) kind = {};
    } else {
      made = std::move(lattice.links);
      lattice.links.kinds.resize(made.kinds.size());
    }
    if (better_in_order(lattice, sizeof(Real))) made = in_order_of_use(lattice, made);
  }
  static DslashLattice make(const Group& group, const DslashOptions& options, const DslashVariant& variant) {
    lattice::GeometrySpec spec{{options.extents.begin(), options.extents.end()},
                               {variant.grid.begin(), variant.grid.end()}};
    spec.width = 3;
    spec.lexicographic = !variant.ordering;
    spec.lanes = variant.simd ? geometry_lanes(spec, 8) : 1;
    Geometry geometry(spec);
    // Small enough that repeated applications neither shrink a vector to zero nor let it overflow.
    const auto numbers = random_numbers<double>(72 * static_cast<std::size_t>(geometry.sites()), 0.2,
                                                static_cast<unsigned>(group.rank()) + 1);
    const std::span links(reinterpret_cast<const Number*>(numbers.data()), numbers.size() / 2);
    const std::array<std::span<const Number>, 2> both{links, links};
    return {group, std::move(geometry), both};
  }
  [[nodiscard]] const DslashLinks<Real>& links() const { return made; }
  DslashLattice lattice;
  DslashLinks<Real> made;
};

template <class Real>
class Runner {
 public:
  Runner(std::shared_ptr<Storage<Real>> storage, const DslashVariant& variant, const base::ThreadPool& pool)
      : storage_(std::move(storage)),
        dslash_(storage_->lattice, storage_->links(), pool, options_of(storage_->lattice.group, variant)),
        out_(dslash_.field.memory.size()) {
    std::ranges::copy(random_numbers<Real>(dslash_.field.memory.size()).span(), dslash_.field.memory.data());
  }
  [[nodiscard]] bool links_twice() const { return storage_->links().stream.size() > 0; }
  void run(int times) {
    for (int i = 0; i < times; ++i) {
      for (const int parity : {1, 0}) {
        const double before = dslash_.counters.waited;
        dslash_.apply(parity, {.out = out_.data()});
        clock_.add(dslash_.counters.waited - before);
      }
    }
    clock_.end_block();
  }

  [[nodiscard]] Samples face_samples(const std::string& name) const {
    return clock_.samples(storage_->lattice.group, name);
  }

 private:
  static DslashFieldOptions options_of(const Group& group, const DslashVariant& variant) {
    DslashFieldOptions options;
    options.plain = !variant.simd;
    options.overlap = variant.ordering;
    if (!variant.faces) {
      options.exchange = [](const Geometry&, std::int64_t, std::span<std::byte>) {
        return std::make_unique<NoExchange>();
      };
    } else if (!variant.put && group.size() > 1) {
      options.exchange = mpi_faces(group);
    }
    return options;
  }

  std::shared_ptr<Storage<Real>> storage_;
  DslashField<Real, Real> dslash_;
  Buffer<Real> out_;
  FaceClock clock_;
};

template <class Real>
std::vector<Samples> measured(const Group& group, const DslashOptions& options) {
  const bool has_mpi = why_no_mpi_peers(group).empty();
  base::ThreadPool pool(base::thread_count(options.threads, group));
  std::map<std::tuple<bool, bool, std::array<int, 4>>, std::shared_ptr<Storage<Real>>> storages;
  std::vector<std::unique_ptr<Runner<Real>>> runners;
  std::vector<Candidate> candidates;
  std::vector<bool> with_faces;
  for (const DslashVariant& variant : options.variants) {
    if (!variant.put && !has_mpi && group.size() > 1) continue;
    auto& storage = storages[{variant.simd, variant.ordering, variant.grid}];
    if (!storage) storage = std::make_shared<Storage<Real>>(group, options, variant);
    with_faces.push_back(variant.faces);
    runners.push_back(std::make_unique<Runner<Real>>(storage, variant, pool));
    candidates.push_back(
        {variant.name, variant.role, [runner = runners.back().get()](int times) { runner->run(times); }, 0.5});
  }
  // Reads as much memory as the applications to both parities use, so that it is in caches only if theirs is. Links
  // that are stored once serve both parities.
  const bool twice = runners.front()->links_twice();
  Reader reader(static_cast<std::int64_t>(work_of(options, group.size()).bytes) * (twice ? 2 : 1), pool);
  candidates.push_back(
      repeated("speed of light: reading as many bytes", Role::speed_of_light, [&] { reader.read(); }, twice ? 0.5 : 1));
  Arena arena(group);
  std::vector<Samples> samples = run_rounds(arena, candidates, options.effort);
  for (std::size_t i = 0; i < runners.size() && group.size() > 1; ++i) {
    if (with_faces[i]) samples.push_back(runners[i]->face_samples(samples[i].name));
  }
  return samples;
}

// Makes a variant of the staggered operator by name, whose other parameters are those of Staggered. "MPI": the same
// solver and kernels, but faces are packed, sent by Isend and Irecv and unpacked, and sums use MPI_Allreduce. "scalar":
// the hopping term works on one site at a time, without SIMD. Throws Error if there is no MPI.
lattice::Staggered staggered_variant(const std::string& name, const Group& group, std::vector<std::int64_t> extents,
                                     std::vector<int> grid, const Memory& fat, const Memory& long_links, int threads) {
  const auto numbers = [](const Memory& memory) {
    const auto bytes = memory.bytes();
    return std::span(reinterpret_cast<const Number*>(bytes.data()), bytes.size() / sizeof(Number));
  };
  const nb::gil_scoped_release released;
  lattice::detail::StaggeredParts parts;
  lattice::StaggeredOptions options;
  options.threads = threads;
  if (name == "scalar") {
    options.lanes = 1;
    parts.plain = true;
  } else {
    if (const std::string why = why_no_mpi_peers(group); !why.empty()) throw Error("no MPI to compare with: " + why);
    parts.exchange = mpi_faces(group);
    const std::shared_ptr<MpiWorld> world = MpiWorld::make();
    parts.sum = [world](std::span<double> sums) { world->allreduce_sum(sums); };
  }
  return {group, std::move(extents), std::move(grid), numbers(fat), numbers(long_links), options, parts};
}

}  // namespace

// One application to the sites of one parity. The speed of light is the time to read as many bytes as an application
// must at least move, with the same number of threads. Variants with MPI are left out if there is no MPI. With several
// ranks, the times for starting and finishing faces follow (FaceClock).
void bind_dslash(nb::module_& module) {
  using Variant = std::tuple<std::string, std::string, bool, bool, bool, std::array<int, 4>, bool>;
  module.def(
      "dslash",
      [](const Group& group, const Extents& extents, bool single, int threads, const std::vector<Variant>& variants,
         const Effort& effort) {
        DslashOptions options{effort, extents, single, threads, {}};
        for (const auto& [name, role, simd, put, ordering, grid, faces] : variants)
          options.variants.push_back({name, samples::role_from_string(role), simd, put, ordering, grid, faces});
        return with_work(work_of(options, group.size()),
                         [&] { return single ? measured<float>(group, options) : measured<double>(group, options); });
      },
      "group"_a, "extents"_a, "single"_a, "threads"_a, "variants"_a, "effort"_a,
      "Measure the staggered hopping term. A variant is (name, role, simd, put, ordering, grid, faces). Returns flop "
      "and bytes of a rank, and the samples.");
  module.def("staggered_variant", &staggered_variant, "variant"_a, "group"_a, "extents"_a, "grid"_a, "fat"_a,
             "long_links"_a, "threads"_a,
             "Make a variant of the staggered operator: \"MPI\" exchanges faces and sums by MPI, \"scalar\" uses "
             "scalar loops.");
}

}  // namespace onehop::bench
