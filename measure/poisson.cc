#include "measure/poisson.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "measure/mpi/peers.h"
#include "onehop/error.h"
#include "onehop/poisson/poisson.h"

namespace onehop::measure {
namespace {

using poisson::Poisson;
using poisson::PoissonExchange;
using poisson::PoissonOptions;
using poisson::PoissonSpec;

// Exchanges no faces.
class NoExchange final : public PoissonExchange {
 public:
  void start() override {}
  void finish() override {}
  void start_sum(double mine) override { sum_ = mine; }
  double finish_sum() override { return sum_; }

 private:
  double sum_ = 0;
};

class MpiExchange final : public PoissonExchange {
 public:
  MpiExchange(HaloPeer& peer, MpiWorld& world) : peer_(peer), world_(world) {}
  void start() override { peer_.start(); }
  void finish() override { peer_.finish(); }
  void start_sum(double mine) override { mine_ = mine; }
  double finish_sum() override {
    world_.allreduce_sum({&mine_, 1});
    return mine_;
  }

 private:
  HaloPeer& peer_;
  MpiWorld& world_;
  double mine_ = 0;
};

PoissonSpec spec_for(int ranks, std::int64_t local) {
  PoissonSpec spec;
  spec.grid = poisson::poisson_grid({local * ranks, local * ranks}, ranks);
  for (std::size_t d = 0; d < 2; ++d) spec.extents[d] = local * spec.grid[d];
  return spec;
}

// Times one solve of many iterations, so that the costs of its beginning and end do not show.
Candidate candidate(std::string name, Role role, Poisson& solver) {
  constexpr int at_once = 50;
  return {std::move(name), role,
          [&solver](int times) { static_cast<void>(solver.solve({.iterations = std::int64_t{at_once} * times})); },
          1.0 / at_once};
}

std::vector<double> solution(Poisson& solver) {
  static_cast<void>(solver.solve({.iterations = 21}));
  return solver.solution();
}

}  // namespace

std::vector<Samples> poisson(const Group& group, const PoissonBenchOptions& options) {
  const PoissonSpec spec = spec_for(group.size(), options.local);
  Arena arena(group);
  std::vector<std::unique_ptr<Poisson>> solvers;
  std::vector<Candidate> candidates;
  const auto add = [&](const std::string& name, Role role, const PoissonOptions& how) {
    solvers.push_back(std::make_unique<Poisson>(group, spec, how));
    candidates.push_back(candidate(name, role, *solvers.back()));
  };
  add("onehop", Role::ours, {.buffers = 2, .enlargement = options.enlargement});
  add("onehop, single buffering", Role::variant, {.buffers = 1, .enlargement = options.enlargement});

  std::vector<std::unique_ptr<HaloPeer>> peers;
  std::unique_ptr<MpiWorld> world;
  if (options.peers) peers = mpi_halo_peers(group);
  if (!peers.empty()) world = MpiWorld::make();
  for (const auto& peer : peers) {
    // Packing each face by itself is slower for several faces to one neighbour.
    if (!peer->name().starts_with("packed, one message")) continue;
    HaloPeer* const one = peer.get();
    add(std::string(one->name()), Role::peer,
        {.enlargement = options.enlargement,
         .exchange = [one, &world](const Schedule& faces, std::span<const std::span<std::byte>> arrays) {
           one->prepare(faces, arrays);
           return std::unique_ptr<PoissonExchange>(std::make_unique<MpiExchange>(*one, *world));
         }});
  }
  const std::vector<double> expected = solution(*solvers.front());
  for (std::size_t i = 1; i < solvers.size(); ++i) {
    if (solution(*solvers[i]) != expected) {
      throw Error("poisson: '" + candidates[i].name + "' found another solution than '" + candidates.front().name +
                  "'");
    }
  }
  add("speed of light: computing alone", Role::speed_of_light,
      {.exchange = [](const Schedule&, std::span<const std::span<std::byte>>) {
        return std::unique_ptr<PoissonExchange>(std::make_unique<NoExchange>());
      }});
  return run_rounds(arena, candidates, options.effort);
}

}  // namespace onehop::measure
