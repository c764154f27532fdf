// `onehop bench halo` and `ring`: one round of a schedule, from array to array.
#include <memory>
#include <tuple>
#include <utility>

#include "bench/native/bare_exchange.h"
#include "bench/native/bench.h"
#include "bench/native/packing_lines.h"
#include "measure/halo.h"
#include "onehop/plan.h"

namespace onehop::bench {
namespace {

// The same exchange of arrays of the same lengths that the ranks share.
struct SharedExchange {
  std::vector<SharedArray> owners;
  std::vector<std::span<std::byte>> arrays;
  Marks marks;
  Plan plan;

  SharedExchange(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> originals)
      : arrays(allocate(group, originals, owners)),
        marks(schedule, group.rank(), arrays),
        plan(group, schedule, arrays) {}

  static std::vector<std::span<std::byte>> allocate(const Group& group, std::span<const std::span<std::byte>> originals,
                                                    std::vector<SharedArray>& owners) {
    std::vector<std::span<std::byte>> arrays;
    for (const auto& original : originals) {
      owners.push_back(group.allocate(static_cast<std::int64_t>(original.size())));
      arrays.push_back(owners.back().bytes().first(original.size()));
    }
    return arrays;
  }
};

// Bare copies and flags between two ranks, the fastest of several copies.
void add_bare_exchange(HaloRounds& rounds, BareExchange& bare, const Effort& effort) {
  std::vector<Candidate> variants;
  for (const BareCopy& copy : bare_copies()) {
    variants.push_back(repeated(copy.name, Role::speed_of_light, [&bare, &marks = rounds.marks(), copy] {
      bare.use(copy.copy);
      marks.dirty();
      bare.run();
      bare.moves_everything() ? marks.check(copy.name) : marks.read();
    }));
  }
  rounds.add(fastest_variant(rounds.arena(), std::move(variants), effort));
}

// The same exchange of the same arrays by other means, for example Python's plan or another library: name, role, a
// collective call, and whether the results are exact. If not, because a codec rounds, received data is read but not
// compared.
using OtherCandidates = std::vector<std::tuple<std::string, std::string, nb::callable, bool>>;

struct HaloOptions {
  Effort effort;
  bool peers = true;
  // Also time packing and unpacking alone, without moving data, and between two ranks bare copies and flags.
  bool mock = true;
  // Each rank computes for about this long before each exchange; computing alone is then the speed of light.
  double compute_us = 0;
  bool shared_arrays = false;  // also time a plan of arrays that the ranks share
};

std::vector<Samples> halo_exchange(const Group& group, const Schedule& schedule,
                                   std::span<const std::span<std::byte>> arrays, const OtherCandidates& others,
                                   const HaloOptions& options) {
  HaloRounds rounds(group, schedule, arrays, options.compute_us);
  std::unique_ptr<SharedExchange> shared;
  if (options.shared_arrays) {
    shared = std::make_unique<SharedExchange>(group, schedule, arrays);
    rounds.add("onehop, shared arrays", Role::variant, [&shared] { shared->plan.run(); }, true, shared->marks);
  }
  std::unique_ptr<Plan> mock;
  PackingLines lines(schedule, group.rank(), arrays);
  if (options.mock) {
    mock = std::make_unique<Plan>(group, schedule, arrays, PlanOptions{.transport = TransportKind::mock});
    rounds.add("onehop, packing only", Role::variant, [&mock] { mock->run(); }, false);
    rounds.add("the limit of packing", Role::variant, [&lines] { lines.touch(); }, false);
  }
  if (options.compute_us > 0) rounds.add("speed of light: computing alone", Role::speed_of_light, [] {}, false);
  std::unique_ptr<BareExchange> bare;
  if (options.mock && rounds.arena().one_host() && group.size() == 2) {
    bare = std::make_unique<BareExchange>(group, schedule, arrays);
    add_bare_exchange(rounds, *bare, options.effort);
  }
  for (const auto& [name, role, run, exact] : others)
    rounds.add(name, samples::role_from_string(role), call_of(run), exact);
  if (options.peers) rounds.add_mpi();
  return rounds.run(options.effort);
}

nb::list measured(const Group& group, const Schedule& schedule, const std::vector<const Memory*>& memory,
                  const OtherCandidates& others, const HaloOptions& options) {
  return samples::measure([&] { return halo_exchange(group, schedule, samples::spans(memory), others, options); });
}

}  // namespace

void bind_halo(nb::module_& module) {
  module.def(
      "halo_exchange",
      [](const Group& group, const Schedule& schedule, const std::vector<const Memory*>& memory, const Effort& effort,
         bool peers, const OtherCandidates& others) {
        return measured(group, schedule, memory, others, {effort, peers, true, 0, true});
      },
      "group"_a, "schedule"_a, "arrays"_a, "effort"_a, "peers"_a, "others"_a,
      "Measure one round of a halo exchange, from array to array.");
  module.def(
      "ring",
      [](const Group& group, const Schedule& schedule, const std::vector<const Memory*>& memory, const Effort& effort,
         bool peers, double compute_us) {
        return measured(group, schedule, memory, {}, {effort, peers, false, compute_us, false});
      },
      "group"_a, "schedule"_a, "arrays"_a, "effort"_a, "peers"_a, "compute_us"_a,
      "Measure one round of an exchange before which each rank computes.");
}

}  // namespace onehop::bench
