#include "onehop/lattice/staggered.h"

#include "python/bindings/lattice_arrays.h"

using onehop::lattice::precision_from_string;
using onehop::lattice::SolverOptions;
using onehop::lattice::SolverReport;
using onehop::lattice::Staggered;
using onehop::lattice::StaggeredAction;
using onehop::lattice::StaggeredOptions;
using onehop::lattice::StaggeredPhases;

namespace {

using Number = std::complex<double>;

auto as_fields(std::vector<Number> values, const Staggered& staggered) {
  return block_array(std::move(values), staggered.geometry(), {3}, true);
}

StaggeredOptions options_of(bool antiperiodic, int lanes, int threads, bool milc_phases) {
  return {.antiperiodic = antiperiodic,
          .lanes = lanes,
          .threads = threads,
          .phases = milc_phases ? StaggeredPhases::milc : StaggeredPhases::standard};
}

StaggeredAction action_of(const std::string& name) {
  if (name == "staggered") return StaggeredAction::naive;
  return name == "asqtad" ? StaggeredAction::asqtad : StaggeredAction::hisq;
}

auto solve(Staggered& staggered, const Memory& source, const std::vector<double>& masses,
           const std::vector<double>& shifts, SolverOptions options, const nb::object& progress) {
  options.progress = callback<std::int64_t, double>(progress);
  auto found = released([&] {
    if (!shifts.empty()) return staggered.solve_shifts(numbers(source), masses.at(0), shifts, options);
    return masses.size() == 1 ? staggered.solve(numbers(source), masses[0], options)
                              : staggered.solve_masses(numbers(source), masses, options);
  });
  return std::tuple(as_fields(std::move(found.solutions), staggered), std::move(found.report));
}

void bind_solver(nb::module_& module) {
  nb::class_<SolverOptions>(module, "LatticeSolverOptions", "See `onehop.lattice.Staggered.solve`.")
      .def(nb::init<>())
      .def_rw("tolerance", &SolverOptions::tolerance)
      .def_rw("iterations", &SolverOptions::iterations)
      .def_prop_rw(
          "precision", [](const SolverOptions& o) { return std::string(to_string(o.precision)); },
          [](SolverOptions& o, const std::string& name) { o.precision = precision_from_string(name); })
      .def_prop_rw(
          "sloppy_precision", [](const SolverOptions& o) { return std::string(to_string(o.sloppy_precision)); },
          [](SolverOptions& o, const std::string& name) { o.sloppy_precision = precision_from_string(name); })
      .def_rw("reproducible", &SolverOptions::reproducible)
      .def_rw("half_halo", &SolverOptions::half_halo);
  nb::class_<SolverReport>(module, "LatticeSolverReport", "See `onehop.lattice.QuarkSolve`.")
      .def_ro("iterations", &SolverReport::iterations)
      .def_ro("reliable_updates", &SolverReport::reliable_updates)
      .def_ro("method", &SolverReport::method)
      .def_ro("residuals", &SolverReport::residuals)
      .def_prop_ro("true_residual", &SolverReport::worst_residual)
      .def_ro("converged", &SolverReport::converged)
      .def_ro("seconds", &SolverReport::seconds)
      .def_ro("communication_seconds", &SolverReport::communication_seconds)
      .def_ro("flops", &SolverReport::flops)
      .def_ro("bytes", &SolverReport::bytes);
}

}  // namespace

void bind_lattice_staggered(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  module.def(
      "lattice_multiply_staggered_phases",
      [](const nb::ndarray<Number, nb::numpy, nb::c_contig, nb::device::cpu>& links,
         const onehop::lattice::Geometry& geometry, int rank, int length, bool antiperiodic, bool milc_phases) {
        onehop::lattice::multiply_staggered_phases({links.data(), links.size()}, geometry, rank, length, antiperiodic,
                                                   milc_phases ? StaggeredPhases::milc : StaggeredPhases::standard);
      },
      "links"_a, "geometry"_a, "rank"_a, "length"_a, "antiperiodic"_a, "milc_phases"_a, release());
  bind_solver(module);
  nb::class_<Staggered>(module, "LatticeStaggered", "See `onehop.lattice.Staggered`.")
      .def_static(
          "from_gauge",
          [](const onehop::lattice::Gauge& gauge, const std::string& action, double u0, bool antiperiodic, int lanes,
             int threads, bool milc_phases) {
            StaggeredOptions options = options_of(antiperiodic, lanes, threads, milc_phases);
            options.u0 = u0;
            return Staggered::from_gauge(gauge, action_of(action), options);
          },
          "gauge"_a, "action"_a, "u0"_a, "antiperiodic"_a, "lanes"_a, "threads"_a, "milc_phases"_a, release())
      .def_static(
          "of_links",
          [](const onehop::Group& group, std::vector<std::int64_t> extents, std::vector<int> grid, const Memory& fat,
             const Memory* long_links, int lanes, int threads, std::vector<int> rank_at) {
            return Staggered(group, std::move(extents), std::move(grid), numbers(fat),
                             long_links == nullptr ? std::span<const Number>() : numbers(*long_links),
                             options_of(true, lanes, threads, false), std::move(rank_at));
          },
          "group"_a, "extents"_a, "grid"_a, "fat"_a, "long_links"_a.none(), "lanes"_a, "threads"_a, "rank_at"_a,
          release())
      .def(
          "link_bytes",
          [](const Staggered& s, const std::string& precision) {
            return s.link_bytes(precision_from_string(precision));
          },
          "precision"_a)
      .def_prop_ro("lanes", [](const Staggered& s) { return s.geometry().spec().lanes; })
      .def_prop_ro("threads", &Staggered::threads)
      .def_prop_ro("has_long_links", &Staggered::has_long_links)
      .def(
          "dslash",
          [](Staggered& s, const Memory& fields, const std::string& precision, int parity) {
            auto work = [&] { return s.dslash(numbers(fields), precision_from_string(precision), parity); };
            return as_fields(released(work), s);
          },
          "fields"_a, "precision"_a, "parity"_a)
      .def(
          "apply",
          [](Staggered& s, const Memory& fields, double mass, bool dagger, const std::string& precision) {
            auto work = [&] { return s.apply(numbers(fields), mass, dagger, precision_from_string(precision)); };
            return as_fields(released(work), s);
          },
          "fields"_a, "mass"_a, "dagger"_a, "precision"_a)
      .def(
          "apply_mdagm",
          [](Staggered& s, const Memory& fields, double mass, const std::string& precision) {
            auto work = [&] { return s.apply_mdagm(numbers(fields), mass, precision_from_string(precision)); };
            return as_fields(released(work), s);
          },
          "fields"_a, "mass"_a, "precision"_a)
      .def(
          "filter",
          [](Staggered& s, const Memory& field, int degree, double low, double high) {
            return as_fields(released([&] { return s.filter(numbers(field), degree, low, high); }), s);
          },
          "field"_a, "degree"_a, "low"_a, "high"_a)
      .def("solve", &solve, "source"_a, "masses"_a, "shifts"_a, "options"_a, "progress"_a.none());
}
