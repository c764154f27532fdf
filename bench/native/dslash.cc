// `onehop bench dslash`: the staggered hopping term with fat and long links, in several variants.
#include <complex>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <type_traits>
#include <utility>

#include "bench/native/benchmarks.h"
#include "bench/native/face_clock.h"
#include "bench/native/mpi/faces.h"
#include "bench/native/read_all.h"
#include "lattice/staggered/dslash.h"
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

// Random links, small enough that repeated applications neither shrink a vector to zero nor let it overflow.
std::vector<Number> random_links(std::int64_t count, int rank) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::uniform_real_distribution<float> even(-0.2F, 0.2F);
  std::vector<Number> links(static_cast<std::size_t>(count) * 36);
  for (Number& z : links) z = {even(random), even(random)};
  return links;
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
    const auto links = random_links(geometry.sites(), group.rank());
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
    std::mt19937 random(3);
    std::uniform_real_distribution<Real> even(-1, 1);
    for (Real& x : dslash_.field.memory.span()) x = even(random);
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
      options.exchange = [group](const Geometry& geometry, std::int64_t bytes, std::span<std::byte> field) {
        return std::make_unique<MpiFaces>(group, geometry, bytes, field);
      };
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
  Reader reader(static_cast<std::int64_t>(dslash_work(options, group.size()).bytes) * (twice ? 2 : 1), pool);
  candidates.push_back({"speed of light: reading as many bytes", Role::speed_of_light,
                        [&](int times) {
                          for (int i = 0; i < times; ++i) reader.read();
                        },
                        twice ? 0.5 : 1});
  Arena arena(group);
  std::vector<Samples> samples = run_rounds(arena, candidates, options.effort);
  for (std::size_t i = 0; i < runners.size() && group.size() > 1; ++i) {
    if (with_faces[i]) samples.push_back(runners[i]->face_samples(samples[i].name));
  }
  return samples;
}

}  // namespace

// Per site 16 links, a vector that is read, and a vector that is read and written.
LatticeWork dslash_work(const DslashOptions& options, int ranks) {
  double sites = 0.5 / ranks;
  for (const std::int64_t extent : options.extents) sites *= static_cast<double>(extent);
  return {sites * 1146, sites * (16 * 18 + 3 * 6) * (options.single ? 4 : 8)};
}

std::vector<Samples> dslash(const Group& group, const DslashOptions& options) {
  if (options.variants.empty()) throw BadInput("dslash: expected one variant or more");
  return options.single ? measured<float>(group, options) : measured<double>(group, options);
}

}  // namespace onehop::bench
