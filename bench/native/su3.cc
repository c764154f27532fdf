// `onehop bench su3`: SU(3) algebra for arrays of sites, against code for one site and the processor's speed of light.
#include <complex>
#include <memory>
#include <random>
#include <utility>

#include "bench/native/bench.h"
#include "onehop/lattice/su3.h"
#include "onehop/lattice/su3_array.h"

namespace onehop::bench {
namespace {

namespace algebra = lattice::su3;
using lattice::detail::Buffer;

enum class Su3Operation { vectors, matrices, exponentials, reunitarise };

std::vector<std::complex<double>> random_complex(std::size_t count) {
  const auto numbers = random_numbers<double>(2 * count, 0.2);
  const auto* const pairs = reinterpret_cast<const std::complex<double>*>(numbers.data());
  return {pairs, pairs + count};
}

// One candidate's own memory, so that none finds its data in cache because of another.
template <class T>
struct Work {
  explicit Work(std::size_t sites) : m(18 * sites), v(18 * sites), r(18 * sites) {
    algebra::to_aosoa<T>(random_complex(9 * sites), 9, m.span());
    algebra::to_aosoa<T>(random_complex(9 * sites), 9, v.span());
  }
  Buffer<T> m, v, r;
};

template <class T>
void run_once(const Work<T>& work, Su3Operation operation) {
  const std::size_t vectors = work.m.span().size() / 3;
  switch (operation) {
    case Su3Operation::vectors:
      return algebra::add_products<T>(work.m.span(), work.v.span().first(vectors), work.r.span().first(vectors));
    case Su3Operation::matrices:
      return algebra::products<T>(work.m.span(), work.v.span(), work.r.span());
    case Su3Operation::exponentials:
      return algebra::exponentials<T>(work.m.span(), work.r.span());
    case Su3Operation::reunitarise:
      return algebra::reunitarise<T>(work.m.span());
  }
}

// The same operations, one site after the other.
template <class T>
struct SiteWork {
  explicit SiteWork(std::size_t sites) : m(sites), b(sites), v(sites), r(sites), c(sites) {
    const auto numbers = random_complex(9 * sites);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const algebra::Complex<T> z{static_cast<T>(numbers[i].real()), static_cast<T>(numbers[i].imag())};
      m[i / 9].e[i % 9 / 3][i % 3] = b[i / 9].e[i % 3][i % 9 / 3] = z;
      v[i / 9].c[i % 3] = z;
    }
  }
  std::vector<algebra::Matrix<T>> m, b;
  std::vector<algebra::Vector<T>> v, r;
  std::vector<algebra::Matrix<T>> c;
};

template <class T>
void run_sites(SiteWork<T>& work, Su3Operation operation) {
  const std::size_t sites = work.m.size();
  if (operation == Su3Operation::vectors) {
    for (std::size_t i = 0; i < sites; ++i) algebra::add_product(work.r[i], work.m[i], work.v[i]);
  } else if (operation == Su3Operation::matrices) {
    for (std::size_t i = 0; i < sites; ++i) work.c[i] = work.m[i] * work.b[i];
  }
  if constexpr (sizeof(T) == sizeof(double)) {  // the code for one site has these in double precision only
    if (operation == Su3Operation::exponentials) {
      for (std::size_t i = 0; i < sites; ++i) work.c[i] = algebra::exponential(work.m[i]);
    } else if (operation == Su3Operation::reunitarise) {
      for (auto& each : work.m) algebra::reunitarise(each);
    }
  }
}

// Runs the loops for this instruction set; "" is the best.
template <class Body>
Candidate candidate(std::string name, Role role, const std::string& target, Body body) {
  return {std::move(name), role, [body, target](int times) {
            algebra::use_array_target(target);
            for (int i = 0; i < times; ++i) {
              body();
              __asm__ volatile("" : : : "memory");
            }
          }};
}

template <class T>
std::vector<Samples> measured(const Group& group, Su3Operation operation, std::int64_t sites, const Effort& effort) {
  Arena arena(group);
  const auto count = static_cast<std::size_t>(sites);
  std::vector<std::string> targets = algebra::array_targets();
  std::vector<std::unique_ptr<Work<T>>> works;
  std::vector<Candidate> candidates;
  for (auto name = targets.rbegin(); name != targets.rend(); ++name) {
    Work<T>& work = *works.emplace_back(std::make_unique<Work<T>>(count));
    candidates.push_back(candidate("onehop, " + *name, works.size() == 1 ? Role::ours : Role::variant, *name,
                                   [&work, operation] { run_once(work, operation); }));
  }
  SiteWork<T> site_work(count);
  const bool both = operation == Su3Operation::vectors || operation == Su3Operation::matrices;
  if (both || sizeof(T) == sizeof(double)) {
    candidates.push_back(
        candidate("one site after the other", Role::peer, "", [&] { run_sites(site_work, operation); }));
  }
  if (operation == Su3Operation::vectors) {
    Work<T>& work = *works.emplace_back(std::make_unique<Work<T>>(count));
    const std::size_t vectors = work.m.span().size() / 3;
    Candidate arithmetic = candidate("multiply-adds alone", Role::speed_of_light, "", [count] {
      algebra::arithmetic_alone<T>(static_cast<std::int64_t>(count / algebra::array_lanes<T>));
    });
    Candidate movement = candidate("loads and stores alone", Role::speed_of_light, "", [&work, vectors] {
      algebra::movement_alone<T>(work.m.span(), work.v.span().first(vectors), work.r.span().first(vectors));
    });
    const auto tried = run_rounds(arena, {arithmetic, movement}, {effort.seconds / 10, effort.block_us, 3, 100});
    const bool moves = arena.agree(median(tried[1].us) > median(tried[0].us) ? 1 : 0) != 0;
    Candidate& harder = moves ? movement : arithmetic;
    harder.name = "speed of light: " + harder.name;
    candidates.push_back(std::move(harder));
  }
  std::vector<Samples> samples = run_rounds(arena, candidates, effort);
  algebra::use_array_target("");
  return samples;
}

}  // namespace

// The candidates are the loops for this processor and for others; the peer is code for one site. The speed of light of
// `vectors` is the slower of the multiply-adds alone and the loads and stores alone.
void bind_su3(nb::module_& module) {
  module.def(
      "su3",
      [](const Group& group, int operation, bool single, std::int64_t sites, const Effort& effort) {
        const auto which = static_cast<Su3Operation>(operation);
        return samples::measure([&] {
          return single ? measured<float>(group, which, sites, effort) : measured<double>(group, which, sites, effort);
        });
      },
      "group"_a, "operation"_a, "single"_a, "sites"_a, "effort"_a,
      "Measure SU(3) algebra on arrays of `sites` sites, a multiple of 16.");
}

}  // namespace onehop::bench
