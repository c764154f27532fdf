// The extension module onehop_bench._native: the benchmarks behind `onehop bench`. All of them are collective. Its
// classes and library are those of onehop._core, which must be imported before.
#include <functional>
#include <string>
#include <tuple>

#include <nanobind/stl/array.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/pair.h>

#include "bench/native/benchmarks.h"
#include "bench/native/read_all.h"
#include "bench/native/shared_sum.h"
#include "measure/permutation.h"
#include "onehop/version.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"
#include "python/bindings/samples.h"
#include "src/group/memory_left.h"

namespace bench = onehop::bench;

namespace {

using bench::Effort;
using onehop::Group;

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

// Makes candidates that call Python from (name, role, callable, whether the results are exact).
std::vector<bench::OtherCandidate> other_candidates(const nb::list& list) {
  std::vector<bench::OtherCandidate> candidates;
  for (const nb::handle item : list) {
    const auto entry = nb::cast<nb::tuple>(item);
    candidates.push_back({nb::cast<std::string>(entry[0]), samples::role_from_string(nb::cast<std::string>(entry[1])),
                          call_of(entry[2]), nb::cast<bool>(entry[3])});
  }
  return candidates;
}

// Each other operation is (name, callable, source, result).
std::vector<bench::OtherOperation> other_operations(const nb::list& list) {
  std::vector<bench::OtherOperation> operations;
  for (const nb::handle item : list) {
    const auto entry = nb::cast<nb::tuple>(item);
    operations.push_back(
        {nb::cast<std::string>(entry[0]), call_of(entry[1]), floats_of(entry[2]), floats_of(entry[3])});
  }
  return operations;
}

nb::list halo_exchange(const Group& group, const onehop::Schedule& schedule, const std::vector<const Memory*>& memory,
                       const Effort& effort, bool peers, bool mock, double compute_us, const nb::list& others,
                       bool shared_arrays) {
  const std::vector<std::span<std::byte>> arrays = samples::spans(memory);
  const bench::HaloOptions options{effort, peers, mock, compute_us, other_candidates(others), shared_arrays};
  return samples::measure([&] { return bench::halo_exchange(group, schedule, arrays, options); });
}

nb::list allreduce(const Group& group, std::int64_t bytes, const Effort& effort, bool peers,
                   const std::vector<samples::ReduceVariant>& variants, const nb::list& others, bool in_place) {
  bench::AllReduceOptions options{effort, samples::variants(variants), {}, peers, in_place};
  bench::Buffer array;
  if (peers && bench::SharedSum::possible(group)) {
    array = bench::Buffer(bytes);
    const auto numbers = bench::floats(array);
    const auto sum = std::make_shared<bench::SharedSum>(group);
    options.others.push_back({"vLLM's algorithm", [sum, numbers] { sum->run(numbers); }, numbers, numbers});
  }
  for (auto& other : other_operations(others)) options.others.push_back(std::move(other));
  return samples::sum_samples(group, bytes, options);
}

bench::CollectiveKind kind_of(const std::string& name) {
  return bench::one_of<bench::CollectiveKind>(name, {"reduce_scatter", "allgather", "broadcast", "all_to_all"});
}

nb::list collective(const Group& group, const std::string& kind, std::int64_t bytes, const Effort& effort, bool peers,
                    const nb::list& others) {
  const std::vector<bench::OtherOperation> operations = other_operations(others);
  const auto which = kind_of(kind);
  return samples::measure([&] { return bench::collective(group, which, bytes, effort, peers, operations); });
}

nb::list permutation(const Group& group, int local_bits, const std::vector<std::pair<int, int>>& pairs,
                     std::int64_t element_bytes, const std::string& transport, const Effort& effort, bool peers,
                     const std::vector<std::string>& codecs) {
  const auto spec = bench::swap_bits(local_bits, pairs, element_bytes, group.size());
  bench::PermutationOptions options{effort, peers, onehop::transport_from_string(transport), pairs};
  for (const std::string& codec : codecs) options.codecs.push_back(onehop::codec_from_string(codec));
  return samples::measure([&] { return bench::permutation(group, spec, options); });
}

onehop::lattice::Staggered staggered_variant(const std::string& variant, const Group& group,
                                             std::vector<std::int64_t> extents, std::vector<int> grid,
                                             const Memory& fat, const Memory& long_links, int threads) {
  const auto numbers = [](const Memory& memory) {
    const auto bytes = memory.bytes();
    return std::span(reinterpret_cast<const std::complex<double>*>(bytes.data()),
                     bytes.size() / sizeof(std::complex<double>));
  };
  const nb::gil_scoped_release released;
  return bench::staggered_variant(variant, group, std::move(extents), std::move(grid), numbers(fat),
                                  numbers(long_links), threads);
}

void bind_messages(nb::module_& module) {
  module.def(
      "ping_pong",
      [](const Group& group, std::int64_t bytes, const Effort& effort, bool get, bool peers, bool qspi) {
        return samples::measure([&] { return bench::ping_pong(group, bytes, {effort, peers, qspi, get}); });
      },
      "group"_a, "bytes"_a, "effort"_a, "get"_a, "peers"_a, "qspi"_a = false,
      "Measure one message between two ranks, one way. Like most benchmarks, it returns (name, role, microseconds of "
      "each round) of each candidate.");
  module.def(
      "exchange",
      [](const Group& group, std::int64_t bytes, int messages, const Effort& effort, bool peers, bool qspi) {
        return samples::measure([&] { return bench::exchange(group, bytes, {effort, peers, qspi, false, messages}); });
      },
      "group"_a, "bytes"_a, "messages"_a, "effort"_a, "peers"_a, "qspi"_a = false,
      "Measure several messages in both directions at once.");
  module.def("halo_exchange", &halo_exchange, "group"_a, "schedule"_a, "arrays"_a, "effort"_a, "peers"_a, "mock"_a,
             "compute_us"_a, "others"_a, "shared_arrays"_a = false,
             "Measure one round of a halo exchange, from array to array.");
  module.def("permutation", &permutation, "group"_a, "local_bits"_a, "pairs"_a, "element_bytes"_a, "transport"_a,
             "effort"_a, "peers"_a, "codecs"_a = std::vector<std::string>{},
             "Measure a permutation that swaps pairs of index bits of a distributed state.");
  module.def("allreduce", &allreduce, "group"_a, "bytes"_a, "effort"_a, "peers"_a, "variants"_a, "others"_a,
             "in_place"_a = false,
             "Measure an all-reduce of float32. Returns (name, role, microseconds of each round, error) of each "
             "candidate. `in_place`: each candidate has one array, which is source and result.");
  module.def("collective", &collective, "group"_a, "kind"_a, "bytes"_a, "effort"_a, "peers"_a, "others"_a,
             "Measure reduce_scatter, allgather, broadcast or all_to_all of float32. Returns (name, role, microseconds "
             "of each round) of each candidate.");
  module.def(
      "collective_lengths",
      [](const std::string& kind, std::int64_t bytes, int ranks) {
        const auto lengths = bench::collective_lengths(kind_of(kind), bytes, ranks);
        return std::pair(lengths.source, lengths.result);
      },
      "kind"_a, "bytes"_a, "ranks"_a, "Return the lengths of the source and the result of such an operation.");
  module.def(
      "codec",
      [](const Group& group, const std::string& codec, const std::string& step, std::int64_t bytes,
         const Effort& effort) {
        const auto which = bench::one_of<bench::CodecStep>(step, {"encode", "decode", "decode_add"});
        return samples::measure(
            [&] { return bench::codec(group, onehop::codec_from_string(codec), which, bytes, effort); });
      },
      "group"_a, "codec"_a, "step"_a, "bytes"_a, "effort"_a,
      "Measure the encoding or decoding of `bytes` bytes of float32.");
}

void bind_lattice(nb::module_& module) {
  module.def(
      "su3",
      [](const Group& group, const std::string& operation, bool single, std::int64_t sites, const Effort& effort) {
        const auto which =
            bench::one_of<bench::Su3Operation>(operation, {"vectors", "matrices", "exponentials", "reunitarise"});
        return samples::measure([&] { return bench::su3(group, which, single, sites, effort); });
      },
      "group"_a, "operation"_a, "single"_a, "sites"_a, "effort"_a, "Measure SU(3) algebra on arrays of `sites` sites.");
  module.def(
      "dslash",
      [](const Group& group, const std::array<std::int64_t, 4>& extents, bool single, int threads,
         const std::vector<std::tuple<std::string, std::string, bool, bool, bool, std::array<int, 4>, bool>>& variants,
         const Effort& effort) {
        bench::DslashOptions options{effort, extents, single, threads, {}};
        for (const auto& [name, role, simd, put, ordering, grid, faces] : variants)
          options.variants.push_back({name, samples::role_from_string(role), simd, put, ordering, grid, faces});
        const bench::LatticeWork work = bench::dslash_work(options, group.size());
        return nb::make_tuple(work.flops, work.bytes, samples::measure([&] { return bench::dslash(group, options); }));
      },
      "group"_a, "extents"_a, "single"_a, "threads"_a, "variants"_a, "effort"_a,
      nb::sig("def dslash(group: Group, extents: Sequence[int], single: bool, threads: int, "
              "variants: Sequence[tuple[str, str, bool, bool, bool, Sequence[int], bool]], effort: MeasureEffort) "
              "-> tuple[float, float, list]"),
      "Measure the staggered hopping term. A variant is (name, role, simd, put, ordering, grid, faces). Returns flop "
      "and "
      "bytes of a rank, and the samples.");
  module.def(
      "wilson",
      [](const Group& group, const std::array<std::int64_t, 4>& extents, const std::array<int, 4>& grid,
         const std::string& precision, int recon, bool clover, int threads, const Effort& effort) {
        const bench::WilsonOptions options{effort, extents, grid,   onehop::lattice::precision_from_string(precision),
                                           recon,  clover,  threads};
        const bench::LatticeWork work = bench::wilson_work(options);
        return nb::make_tuple(work.flops, work.bytes, samples::measure([&] { return bench::wilson(group, options); }));
      },
      "group"_a, "extents"_a, "grid"_a, "precision"_a, "recon"_a, "clover"_a, "threads"_a, "effort"_a,
      "Measure the Wilson hopping term on the sites of one parity. Returns flop and bytes of a rank, and the samples.");
  module.def(
      "smearing",
      [](const Group& group, const std::array<std::int64_t, 4>& extents, const std::string& kind, bool single,
         const Effort& effort) {
        const auto which = bench::one_of<bench::SmearingKind>(kind, {"fat7", "asqtad", "hisq"});
        const bench::SmearingOptions options{effort, extents, which, single};
        const bench::LatticeWork work = bench::smearing_work(options, group.size());
        return nb::make_tuple(work.flops, work.bytes,
                              samples::measure([&] { return bench::smearing(group, options); }));
      },
      "group"_a, "extents"_a, "kind"_a, "single"_a, "effort"_a,
      nb::sig("def smearing(group: Group, extents: Sequence[int], kind: str, single: bool, effort: MeasureEffort) "
              "-> tuple[float, float, list]"),
      "Measure the computation of fat and long links. Returns flop (as MILC counts them) and bytes of a rank, and the "
      "samples.");
  module.def("staggered_variant", &staggered_variant, "variant"_a, "group"_a, "extents"_a, "grid"_a, "fat"_a,
             "long_links"_a, "threads"_a,
             "Make a variant of the staggered operator: \"MPI\" exchanges faces and sums by MPI, \"scalar\" uses "
             "scalar loops.");
}

}  // namespace

// NOLINTNEXTLINE: the macro is nanobind's.
NB_MODULE(_native, module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  module.doc() = "The benchmarks of onehop.";
  module.attr("__version__") = onehop::version();
  nb::set_leak_warnings(false);
  nb::class_<bench::Bandwidth>(module, "Bandwidth", "The read bandwidth of all threads of a rank.")
      .def(nb::init<const Group&, std::int64_t, int>(), "group"_a, "bytes"_a, "threads"_a, release())
      .def("measure", &bench::Bandwidth::measure, "times"_a, release(),
           "Return the GB/s of this rank while all ranks read. Collective.");
  module.def(
      "mpi_version", [] { return bench::MpiWorld::make()->version(); }, release(),
      "Return the version of the MPI library to compare with.");
  module.def("available_memory", &onehop::detail::available_memory,
             "Return the bytes of memory that this process can still allocate.");
  bind_messages(module);
  bind_lattice(module);
}
