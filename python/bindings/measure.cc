// The measurements behind `onehop tune` and `onehop tour`. All of them are collective.
#include <string>
#include <tuple>

#include <nanobind/stl/pair.h>

#include "measure/halo.h"
#include "measure/mpi/peers.h"
#include "measure/peak.h"
#include "measure/permutation.h"
#include "measure/pingpong.h"
#include "measure/poisson.h"
#include "measure/tune.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"
#include "python/bindings/samples.h"
#include "src/base/thread_count.h"

namespace measure = onehop::measure;

namespace {

using measure::Effort;
using onehop::Group;

nb::list halo(const Group& group, const onehop::Schedule& schedule, const std::vector<const Memory*>& memory,
              const Effort& effort, bool peers, bool alone) {
  return samples::measure([&] {
    measure::HaloRounds rounds(group, schedule, samples::spans(memory));
    if (alone) rounds.add_exchange_alone();
    if (peers) rounds.add_mpi();
    return rounds.run(effort);
  });
}

nb::list ping_pong(const Group& group, std::int64_t bytes, const Effort& effort) {
  return samples::measure([&] {
    measure::Arena arena(group);
    return measure::run_rounds(arena, {measure::onehop_ping_pong(group, bytes, false, measure::Role::ours)}, effort);
  });
}

// Each choice is (stores, chunk_bytes, slot_bytes, slots).
nb::list try_stores(const Group& group, std::int64_t bytes, bool both_ways,
                    const std::vector<std::tuple<std::string, std::int64_t, std::int64_t, int>>& choices,
                    const Effort& effort) {
  std::vector<measure::StoreChoice> list;
  for (const auto& [stores, chunk, slot_bytes, slots] : choices) {
    list.push_back({onehop::store_kind_from_string(stores), chunk, slot_bytes, slots});
  }
  return samples::measure([&] { return measure::try_stores(group, bytes, both_ways, list, effort); });
}

// Each choice is (spins, spins_oversubscribed, yields).
nb::list try_waits(const Group& group, double compute_us, const std::vector<std::tuple<int, int, int>>& choices,
                   const Effort& effort) {
  std::vector<measure::WaitChoice> list;
  for (const auto& [spins, oversubscribed, yields] : choices) list.push_back({spins, oversubscribed, yields});
  return samples::measure([&] { return measure::try_waits(group, compute_us, list, effort); });
}

}  // namespace

void bind_measure(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Effort>(module, "MeasureEffort",
                     "The duration of a measurement.\n\n"
                     "Parameters\n----------\n"
                     "seconds : float\n    Time to measure.\n"
                     "block_us : float\n    Duration of a block of repetitions in microseconds.\n"
                     "min_rounds : int\n    Minimum number of rounds of all candidates.")
      .def(
          "__init__",
          [](Effort* self, double seconds, double block_us, int min_rounds) {
            new (self) Effort{.seconds = seconds, .block_us = block_us, .min_rounds = min_rounds};
          },
          "seconds"_a = 1.0, "block_us"_a = 400.0, "min_rounds"_a = 5);
  module.def("measure_ping_pong", &ping_pong, "group"_a, "bytes"_a, "effort"_a,
             "Measure one message between two ranks, one way. Like most measurements, it returns (name, role, "
             "microseconds of each round) of each candidate.");
  module.def("measure_halo", &halo, "group"_a, "schedule"_a, "arrays"_a, "effort"_a, "peers"_a = false,
             "alone"_a = false,
             "Measure one round of an exchange, from array to array. `alone` adds onehop with a clock that runs only "
             "while data is exchanged, `peers` adds plain MPI.");
  module.def(
      "measure_permutation",
      [](const Group& group, int local_bits, const std::vector<std::pair<int, int>>& pairs, std::int64_t element_bytes,
         const Effort& effort) {
        return samples::measure([&] {
          const auto spec = measure::swap_bits(local_bits, pairs, element_bytes, group.size());
          return measure::PermutationRounds(group, spec).run(effort);
        });
      },
      "group"_a, "local_bits"_a, "pairs"_a, "element_bytes"_a, "effort"_a,
      "Measure a permutation that swaps pairs of index bits of a distributed state.");
  module.def(
      "measure_poisson",
      [](const Group& group, std::int64_t local, std::int64_t enlargement, const Effort& effort, bool peers) {
        return samples::measure([&] { return measure::poisson(group, {effort, local, enlargement, peers}); });
      },
      "group"_a, "local"_a, "enlargement"_a, "effort"_a, "peers"_a, "Measure one iteration of the Poisson solver.");
  module.def(
      "measure_allreduce",
      [](const Group& group, std::int64_t bytes, const Effort& effort, bool peers,
         const std::vector<samples::ReduceVariant>& variants) {
        return samples::sum_samples(group, bytes, {effort, samples::variants(variants), {}, peers, false});
      },
      "group"_a, "bytes"_a, "effort"_a, "peers"_a, "variants"_a,
      "Measure an all-reduce of float32 by each variant (name, role, codec, algorithm, chunk_bytes). Returns (name, "
      "role, microseconds of each round, error) of each candidate.");
  module.def("measure_stores", &try_stores, "group"_a, "bytes"_a, "both_ways"_a, "choices"_a, "effort"_a,
             "Measure messages of one size with each setting of (stores, chunk_bytes, slot_bytes, slots).");
  module.def("measure_waits", &try_waits, "group"_a, "compute_us"_a, "choices"_a, "effort"_a,
             "Measure steps of a ring with each setting of (spins, spins_oversubscribed, yields).");
  module.def("peak_gflops", &measure::peak_gflops, "single"_a, release(),
             "Measure the GFLOP/s of one thread with fused multiply-adds.");
  module.def(
      "thread_count", [](int requested, const Group& group) { return onehop::base::thread_count(requested, group); },
      "requested"_a, "group"_a, release(), "Return the threads of this rank; 0: its share of the cores. Collective.");
  module.def("why_no_mpi_peers", &measure::why_no_mpi_peers, "group"_a, release(),
             "Return why there is no MPI to compare with, or an empty text if there is. Collective.");
}
