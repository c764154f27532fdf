// The extension module onehop_bench._native: the benchmarks behind `onehop bench`. Its classes and library are those of
// onehop._core, which must be imported before.
#include <functional>

#include <nanobind/stl/complex.h>

#include "bench/native/bench.h"
#include "bench/native/read_all.h"
#include "measure/mpi/peers.h"
#include "onehop/version.h"
#include "src/base/memory_left.h"

// NOLINTNEXTLINE: the macro is nanobind's.
NB_MODULE(_native, module) {
  namespace bench = onehop::bench;
  using release = nb::call_guard<nb::gil_scoped_release>;
  module.doc() = "The benchmarks of onehop.";
  module.attr("__version__") = onehop::version();
  nb::set_leak_warnings(false);
  nb::class_<bench::Bandwidth>(module, "Bandwidth", "The read bandwidth of all threads of a rank.")
      .def(nb::init<const onehop::Group&, std::int64_t, int>(), "group"_a, "bytes"_a, "threads"_a, release())
      .def("measure", &bench::Bandwidth::measure, "times"_a, release(),
           "Return the GB/s of this rank while all ranks read. Collective.");
  module.def(
      "mpi_version", [] { return bench::MpiWorld::make()->version(); }, release(),
      "Return the version of the MPI library to compare with.");
  module.def("available_memory", &onehop::detail::available_memory,
             "Return the bytes of memory that this process can still allocate.");
  for (const auto bind :
       {bench::bind_codec, bench::bind_collectives, bench::bind_dslash, bench::bind_halo, bench::bind_messages,
        bench::bind_permutation, bench::bind_smearing, bench::bind_su3, bench::bind_wilson}) {
    bind(module);
  }
}
