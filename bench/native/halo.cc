// `onehop bench halo` and `ring`: one round of a schedule, from array to array.
#include <memory>
#include <utility>

#include "bench/native/bare_exchange.h"
#include "bench/native/benchmarks.h"
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
    variants.push_back({copy.name, Role::speed_of_light, [&bare, &marks = rounds.marks(), copy](int repetitions) {
                          bare.use(copy.copy);
                          for (int i = 0; i < repetitions; ++i) {
                            marks.dirty();
                            bare.run();
                            bare.moves_everything() ? marks.check(copy.name) : marks.read();
                          }
                        }});
  }
  rounds.add(fastest_variant(rounds.arena(), std::move(variants), effort));
}

}  // namespace

std::vector<Samples> halo_exchange(const Group& group, const Schedule& schedule,
                                   std::span<const std::span<std::byte>> arrays, const HaloOptions& options) {
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
  for (const OtherCandidate& other : options.others) rounds.add(other.name, other.role, other.run, other.exact);
  if (options.peers) rounds.add_mpi();
  return rounds.run(options.effort);
}

}  // namespace onehop::bench
