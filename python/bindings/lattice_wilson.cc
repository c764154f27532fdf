#include "onehop/lattice/wilson.h"

#include "onehop/lattice/clover.h"
#include "onehop/lattice/nucleon.h"
#include "onehop/lattice/su3_array.h"
#include "python/bindings/lattice_arrays.h"

using onehop::lattice::Wilson;
using onehop::lattice::WilsonMethod;

namespace {

auto as_fields(std::vector<std::complex<double>> values, const Wilson& wilson) {
  return block_array(std::move(values), wilson.geometry(), {4, 3}, true);
}

WilsonMethod method_of(const std::string& name) {
  if (name == "auto") return WilsonMethod::automatic;
  return name == "cgnr" ? WilsonMethod::cgnr : WilsonMethod::bicgstab;
}

auto solve(Wilson& wilson, const Memory& source, onehop::lattice::SolverOptions options, const std::string& method,
           int schwarz, const nb::object& progress) {
  options.progress = callback<std::int64_t, double>(progress);
  auto found = released([&] { return wilson.solve(numbers(source), options, {method_of(method), schwarz}); });
  return std::tuple(as_fields(std::move(found.solution), wilson), std::move(found.report));
}

}  // namespace

void bind_lattice_wilson(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Wilson>(module, "LatticeWilson", "See `onehop.lattice.Wilson`.")
      .def(
          "__init__",
          [](Wilson* self, const onehop::lattice::Gauge& gauge, double kappa, double csw, bool antiperiodic, int recon,
             const std::string& precision, int lanes, int threads) {
            new (self) Wilson(gauge, {kappa, csw, antiperiodic, recon,
                                      onehop::lattice::precision_from_string(precision), lanes, threads});
          },
          "gauge"_a, "kappa"_a, "csw"_a, "antiperiodic"_a, "recon"_a, "precision"_a, "lanes"_a, "threads"_a, release())
      .def_prop_ro(
          "lanes", [](const Wilson& w) { return w.geometry().spec().lanes; }, "Sites in a vector.")
      .def_prop_ro("threads", &Wilson::threads, "Threads of this rank.")
      .def(
          "dslash",
          [](Wilson& w, const Memory& fields, bool dagger) {
            return as_fields(released([&] { return w.dslash(numbers(fields), dagger); }), w);
          },
          "fields"_a, "dagger"_a)
      .def(
          "apply",
          [](Wilson& w, const Memory& fields, bool dagger) {
            return as_fields(released([&] { return w.apply(numbers(fields), dagger); }), w);
          },
          "fields"_a, "dagger"_a)
      .def(
          "precondition",
          [](Wilson& w, const Memory& fields, bool dagger) {
            return as_fields(released([&] { return w.precondition(numbers(fields), dagger); }), w);
          },
          "fields"_a, "dagger"_a)
      .def("solve", &solve, "source"_a, "options"_a, "method"_a, "schwarz"_a, "progress"_a.none());
  module.def(
      "lattice_nucleon",
      [](const Memory& columns, int parity) {
        auto found = released([&] { return onehop::lattice::nucleon(numbers(columns), parity); });
        const std::size_t sites = found.size();
        return as_array(std::move(found), {sites});
      },
      "columns"_a, "parity"_a);
  module.def("lattice_kappa", &onehop::lattice::wilson_kappa, "mass"_a);
  module.def(
      "lattice_clover_leaves",
      [](const onehop::lattice::Gauge& gauge) {
        return block_array(released([&] { return onehop::lattice::clover_leaves(gauge); }), gauge.geometry(),
                           {6, 3, 3});
      },
      "gauge"_a);
  module.def(
      "lattice_clover_blocks",
      [](const Memory& strength, double weight, bool inverse) {
        auto blocks = released([&] {
          const auto straight = onehop::lattice::clover_blocks(numbers(strength), weight);
          return onehop::lattice::whole_blocks(inverse ? onehop::lattice::inverse_blocks(straight) : straight);
        });
        const std::size_t sites = blocks.size() / 72;
        return as_array(std::move(blocks), {sites, 2, 6, 6});
      },
      "clover_leaves"_a, "weight"_a, "inverse"_a);
  module.def("lattice_targets", &onehop::lattice::su3::array_targets);
  module.def("lattice_use_target", &onehop::lattice::su3::use_array_target, "name"_a);
}
