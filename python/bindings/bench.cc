// The benchmarks behind python/onehop/bench and python/onehop/tour. All of them are collective.
#include <functional>
#include <string>
#include <tuple>

#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/tuple.h>

#include "bench/allreduce.h"
#include "bench/bandwidth.h"
#include "bench/channel.h"
#include "bench/codec.h"
#include "bench/collective.h"
#include "bench/dslash.h"
#include "bench/halo.h"
#include "bench/mpi/peers.h"
#include "bench/permutation.h"
#include "bench/pingpong.h"
#include "bench/poisson.h"
#include "bench/smearing.h"
#include "bench/su3.h"
#include "bench/tune.h"
#include "bench/wilson.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"
#include "src/group/memory_left.h"

namespace bench = onehop::bench;

namespace {

using bench::Effort;
using onehop::Group;

// Converts the samples of each candidate to (name, role, µs of each round).
nb::list as_list(const std::vector<bench::Samples>& samples) {
  nb::list list;
  for (const bench::Samples& one : samples) list.append(nb::make_tuple(one.name, bench::to_string(one.role), one.us));
  return list;
}

template <class Measure>
nb::list measure(const Measure& function) {
  std::vector<bench::Samples> samples;
  {
    const nb::gil_scoped_release released;
    samples = function();
  }
  return as_list(samples);
}

bench::Role role_from_string(const std::string& name) {
  for (const bench::Role role :
       {bench::Role::ours, bench::Role::variant, bench::Role::peer, bench::Role::speed_of_light}) {
    if (name == bench::to_string(role)) return role;
  }
  throw onehop::BadInput("expected the role of a candidate, found '" + name + "'");
}

// Makes candidates that call Python from (name, role, callable, whether the results are exact).
std::vector<bench::OtherCandidate> other_candidates(const nb::list& list) {
  std::vector<bench::OtherCandidate> candidates;
  for (const nb::handle item : list) {
    const auto entry = nb::cast<nb::tuple>(item);
    const auto call = nb::cast<nb::callable>(entry[2]);
    candidates.push_back({nb::cast<std::string>(entry[0]), role_from_string(nb::cast<std::string>(entry[1])),
                          [handle = nb::handle(call)] {
                            const nb::gil_scoped_acquire gil;
                            handle();
                          },
                          nb::cast<bool>(entry[3])});
  }
  return candidates;
}

nb::list halo_exchange(const Group& group, const onehop::Schedule& schedule, const std::vector<const Memory*>& memory,
                       const Effort& effort, bool peers, bool mock, double compute_us, const nb::list& others,
                       bool alone, bool shared_arrays) {
  std::vector<std::span<std::byte>> arrays;
  for (const Memory* one : memory) arrays.push_back(one->bytes());
  const bench::HaloOptions options{effort, peers, mock, compute_us, other_candidates(others), shared_arrays, alone};
  return measure([&] { return bench::halo_exchange(group, schedule, arrays, options); });
}

// Each choice is (stores, chunk_bytes, slot_bytes, slots).
nb::list try_stores(const Group& group, std::int64_t bytes, bool both_ways,
                    const std::vector<std::tuple<std::string, std::int64_t, std::int64_t, int>>& choices,
                    const Effort& effort) {
  std::vector<bench::StoreChoice> list;
  for (const auto& [stores, chunk, slot_bytes, slots] : choices) {
    list.push_back({onehop::store_kind_from_string(stores), chunk, slot_bytes, slots});
  }
  return measure([&] { return bench::try_stores(group, bytes, both_ways, list, effort); });
}

// Each choice is (spins, spins_oversubscribed, yields).
nb::list try_waits(const Group& group, double compute_us, const std::vector<std::tuple<int, int, int>>& choices,
                   const Effort& effort) {
  std::vector<bench::WaitChoice> list;
  for (const auto& [spins, oversubscribed, yields] : choices) list.push_back({spins, oversubscribed, yields});
  return measure([&] { return bench::try_waits(group, compute_us, list, effort); });
}

// A function that calls an object, which must live as long.
std::function<void()> call_of(nb::handle handle) {
  return [handle] {
    const nb::gil_scoped_acquire gil;
    handle();
  };
}

std::span<float> floats_of(nb::handle memory) {
  const auto span = nb::cast<const Memory*>(memory)->bytes();
  return {reinterpret_cast<float*>(span.data()), span.size() / sizeof(float)};
}

// Each variant is (name, role, codec, algorithm, chunk_bytes). Each other candidate is (name, callable, source,
// result).
nb::list allreduce(
    const Group& group, std::int64_t bytes, const Effort& effort, bool peers,
    const std::vector<std::tuple<std::string, std::string, std::string, std::string, std::int64_t>>& variants,
    const nb::list& others, bool in_place) {
  bench::AllReduceOptions options;
  options.effort = effort;
  options.peers = peers;
  options.in_place = in_place;
  for (const auto& [name, role, codec, algorithm, chunk] : variants) {
    options.variants.push_back({name, role_from_string(role), onehop::codec_from_string(codec),
                                onehop::reduce_algorithm_from_string(algorithm), chunk});
  }
  for (const nb::handle item : others) {
    const auto entry = nb::cast<nb::tuple>(item);
    options.others.push_back(
        {nb::cast<std::string>(entry[0]), call_of(entry[1]), floats_of(entry[2]), floats_of(entry[3])});
  }
  bench::AllReduceSamples measured;
  {
    const nb::gil_scoped_release released;
    measured = bench::allreduce(group, bytes, options);
  }
  nb::list list;
  for (std::size_t i = 0; i < measured.samples.size(); ++i) {
    const bench::Samples& one = measured.samples[i];
    list.append(nb::make_tuple(one.name, bench::to_string(one.role), one.us, measured.errors[i]));
  }
  return list;
}

// Each other candidate is (name, callable, source, result).
nb::list collective(const Group& group, const std::string& kind, std::int64_t bytes, const Effort& effort, bool peers,
                    const nb::list& others) {
  std::vector<bench::OtherOperation> list;
  for (const nb::handle item : others) {
    const auto entry = nb::cast<nb::tuple>(item);
    list.push_back({nb::cast<std::string>(entry[0]), call_of(entry[1]), floats_of(entry[2]), floats_of(entry[3])});
  }
  const auto which = bench::collective_kind_from_string(kind);
  return measure([&] { return bench::collective(group, which, bytes, effort, peers, list); });
}

}  // namespace

void bind_bench(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Effort>(module, "BenchEffort",
                     "The duration of a benchmark.\n\n"
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
  module.def(
      "bench_ping_pong",
      [](const Group& group, std::int64_t bytes, const Effort& effort, bool get, bool peers, bool qspi) {
        return measure([&] { return bench::ping_pong(group, bytes, {effort, get, peers, qspi}); });
      },
      "group"_a, "bytes"_a, "effort"_a, "get"_a, "peers"_a, "qspi"_a = false,
      "Measure one message between two ranks, one way. Like most benchmarks, it returns (name, role, microseconds of "
      "each "
      "round) of each candidate.");
  module.def(
      "bench_exchange",
      [](const Group& group, std::int64_t bytes, int messages, const Effort& effort, bool peers, bool qspi) {
        return measure([&] { return bench::exchange(group, bytes, {effort, messages, peers, qspi}); });
      },
      "group"_a, "bytes"_a, "messages"_a, "effort"_a, "peers"_a, "qspi"_a = false,
      "Measure several messages in both directions at once.");
  module.def(
      "bench_codec",
      [](const Group& group, const std::string& codec, const std::string& step, std::int64_t bytes,
         const Effort& effort) {
        return measure([&] {
          return bench::codec(group, onehop::codec_from_string(codec), bench::codec_step_from_string(step), bytes,
                              effort);
        });
      },
      "group"_a, "codec"_a, "step"_a, "bytes"_a, "effort"_a,
      "Measure the encoding or decoding of `bytes` bytes of float32.");
  module.def(
      "bench_su3",
      [](const Group& group, const std::string& operation, bool single, std::int64_t sites, const Effort& effort) {
        return measure(
            [&] { return bench::su3(group, bench::su3_operation_from_string(operation), single, sites, effort); });
      },
      "group"_a, "operation"_a, "single"_a, "sites"_a, "effort"_a, "Measure SU(3) algebra on arrays of `sites` sites.");
  module.def(
      "bench_dslash",
      [](const Group& group, const std::array<std::int64_t, 4>& extents, bool single, int threads,
         const std::vector<std::tuple<std::string, std::string, bool, bool, bool, std::array<int, 4>, bool>>& variants,
         const Effort& effort) {
        bench::DslashOptions options{effort, extents, single, threads, {}};
        for (const auto& [name, role, simd, put, ordering, grid, faces] : variants)
          options.variants.push_back({name, role_from_string(role), simd, put, ordering, grid, faces});
        const bench::DslashWork work = bench::dslash_work(options, group.size());
        return nb::make_tuple(work.flops, work.bytes, measure([&] { return bench::dslash(group, options); }));
      },
      "group"_a, "extents"_a, "single"_a, "threads"_a, "variants"_a, "effort"_a,
      nb::sig("def bench_dslash(group: Group, extents: Sequence[int], single: bool, threads: int, "
              "variants: Sequence[tuple[str, str, bool, bool, bool, Sequence[int], bool]], effort: BenchEffort) "
              "-> tuple[float, float, list]"),
      "Measure the staggered hopping term. A variant is (name, role, simd, put, ordering, grid, faces). Returns flop "
      "and "
      "bytes of a rank, and the samples.");
  nb::class_<bench::Bandwidth>(module, "BenchBandwidth", "The read bandwidth of all threads of a rank.")
      .def(nb::init<const Group&, std::int64_t, int>(), "group"_a, "bytes"_a, "threads"_a, release())
      .def("measure", &bench::Bandwidth::measure, "times"_a, release(),
           "Return the GB/s of this rank while all ranks read. Collective.");
  module.def("bench_peak_gflops", &bench::peak_gflops, "single"_a, release(),
             "Measure the GFLOP/s of one thread with fused multiply-adds.");
  module.def(
      "bench_wilson",
      [](const Group& group, const std::array<std::int64_t, 4>& extents, const std::array<int, 4>& grid,
         const std::string& precision, int recon, bool clover, int threads, const Effort& effort) {
        const bench::WilsonBenchOptions options{
            effort, extents, grid, onehop::lattice::precision_from_string(precision), recon, clover, threads};
        const bench::WilsonWork work = bench::wilson_work(options);
        return nb::make_tuple(work.flops, work.bytes, measure([&] { return bench::wilson(group, options); }));
      },
      "group"_a, "extents"_a, "grid"_a, "precision"_a, "recon"_a, "clover"_a, "threads"_a, "effort"_a,
      "Measure the Wilson hopping term on the sites of one parity. Returns flop and bytes of a rank, and the samples.");
  module.def(
      "bench_smearing",
      [](const Group& group, const std::array<std::int64_t, 4>& extents, const std::string& kind, bool single,
         const Effort& effort) {
        const bench::SmearingBenchOptions options{effort, extents, bench::smearing_kind_from_string(kind), single};
        const bench::SmearingWork work = bench::smearing_work(options, group.size());
        return nb::make_tuple(work.flops, work.bytes, measure([&] { return bench::smearing(group, options); }));
      },
      "group"_a, "extents"_a, "kind"_a, "single"_a, "effort"_a,
      nb::sig("def bench_smearing(group: Group, extents: Sequence[int], kind: str, single: bool, effort: BenchEffort) "
              "-> tuple[float, float, list]"),
      "Measure the computation of fat and long links. Returns flop (as MILC counts them) and bytes of a rank, and the "
      "samples.");
  module.def("bench_halo_exchange", &halo_exchange, "group"_a, "schedule"_a, "arrays"_a, "effort"_a, "peers"_a,
             "mock"_a, "compute_us"_a, "others"_a, "alone"_a = false, "shared_arrays"_a = false,
             "Measure one round of a halo exchange, from array to array.");
  module.def(
      "bench_mpi_version", [] { return bench::MpiWorld::make()->version(); }, release(),
      "Return the version of the MPI library to compare with.");
  module.def("bench_why_no_peers", &bench::why_no_mpi_peers, "group"_a, release(),
             "Return why there is no MPI to compare with, or an empty text if there is. Collective.");
  module.def("bench_available_memory", &onehop::detail::available_memory,
             "Return the bytes of memory that this process can still allocate.");
  module.def(
      "bench_permutation",
      [](const Group& group, int local_bits, const std::vector<std::pair<int, int>>& pairs, std::int64_t element_bytes,
         const std::string& transport, const Effort& effort, bool peers, const std::vector<std::string>& codecs,
         bool alone) {
        onehop::PermuteBitsSpec spec;
        spec.local_bits = spec.bits = local_bits;
        while (1 << (spec.bits - local_bits) < group.size()) ++spec.bits;
        for (int bit = 0; bit < spec.bits; ++bit) spec.permutation.push_back(bit);
        for (const auto& [a, b] : pairs) {
          std::swap(spec.permutation.at(static_cast<std::size_t>(a)), spec.permutation.at(static_cast<std::size_t>(b)));
        }
        spec.element_bytes = element_bytes;
        bench::PermutationOptions options{effort, peers, onehop::transport_from_string(transport), pairs};
        for (const std::string& codec : codecs) options.codecs.push_back(onehop::codec_from_string(codec));
        options.alone = alone;
        return measure([&] { return bench::permutation(group, spec, options); });
      },
      "group"_a, "local_bits"_a, "pairs"_a, "element_bytes"_a, "transport"_a, "effort"_a, "peers"_a,
      "codecs"_a = std::vector<std::string>{}, "alone"_a = false,
      "Measure a permutation that swaps pairs of index bits of a distributed state. `alone` leaves out all candidates "
      "but onehop.");
  module.def(
      "bench_poisson",
      [](const Group& group, std::int64_t local, std::int64_t enlargement, const Effort& effort, bool peers) {
        return measure([&] { return bench::poisson(group, {effort, local, enlargement, peers}); });
      },
      "group"_a, "local"_a, "enlargement"_a, "effort"_a, "peers"_a, "Measure one iteration of the Poisson solver.");
  module.def(
      "bench_allreduce", &allreduce, "group"_a, "bytes"_a, "effort"_a, "peers"_a, "variants"_a, "others"_a,
      "in_place"_a = false,
      "Measure an all-reduce of float32. Returns (name, role, microseconds of each round, error) of each candidate. "
      "`in_place`: each candidate has one array, which is source and result.");
  module.def("bench_collective", &collective, "group"_a, "kind"_a, "bytes"_a, "effort"_a, "peers"_a, "others"_a,
             "Measure reduce_scatter, allgather, broadcast or all_to_all of float32. Returns (name, role, microseconds "
             "of each round) of each candidate.");
  module.def(
      "bench_collective_lengths",
      [](const std::string& kind, std::int64_t bytes, int ranks) {
        const auto lengths = bench::collective_lengths(bench::collective_kind_from_string(kind), bytes, ranks);
        return std::pair(lengths.source, lengths.result);
      },
      "kind"_a, "bytes"_a, "ranks"_a, "Return the lengths of the source and the result of such an operation.");
  module.def("bench_try_stores", &try_stores, "group"_a, "bytes"_a, "both_ways"_a, "choices"_a, "effort"_a,
             "Measure messages of one size with each setting of (stores, chunk_bytes, slot_bytes, slots).");
  module.def("bench_try_waits", &try_waits, "group"_a, "compute_us"_a, "choices"_a, "effort"_a,
             "Measure steps of a ring with each setting of (spins, spins_oversubscribed, yields).");
}
