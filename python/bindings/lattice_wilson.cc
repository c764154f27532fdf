#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>

#include "onehop/lattice/clover.h"
#include "onehop/lattice/su3_array.h"
#include "onehop/lattice/wilson.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

using onehop::lattice::Wilson;
using onehop::lattice::WilsonOptions;

namespace {

using Number = std::complex<double>;
using Array = nb::ndarray<nb::numpy, Number>;

std::span<const Number> numbers(const Memory& memory) {
  return {reinterpret_cast<const Number*>(memory.bytes().data()), memory.bytes().size() / sizeof(Number)};
}

Array as_array(std::vector<Number> values) {
  auto* held = new std::vector<Number>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
  const std::size_t shape[]{held->size()};
  return {held->data(), 1, shape, owner};
}

template <class Work>
Array released(const Work& work) {
  std::vector<Number> found;
  {
    const nb::gil_scoped_release release;
    found = work();
  }
  return as_array(std::move(found));
}

nb::tuple solve(Wilson& wilson, const Memory& source, onehop::lattice::SolverOptions options, bool cgnr, int schwarz,
                const nb::object& progress) {
  if (!progress.is_none()) {
    options.progress = [&progress](std::int64_t done, double residual) {
      const nb::gil_scoped_acquire acquired;
      progress(done, residual);
    };
  }
  onehop::lattice::WilsonSolve found;
  {
    const nb::gil_scoped_release release;
    const auto method = cgnr ? onehop::lattice::WilsonMethod::cgnr : onehop::lattice::WilsonMethod::bicgstab;
    found = wilson.solve(numbers(source), options, {method, schwarz});
  }
  return nb::make_tuple(as_array(std::move(found.solution)), std::move(found.report));
}

}  // namespace

void bind_lattice_wilson(nb::module_& module) {
  nb::class_<Wilson>(
      module, "LatticeWilson",
      "The Wilson operator M = A - kappa D of a gauge field, with or without the clover term. Fields are complex128 "
      "of this rank's block in lexicographic order, [site][spin][colour], several fields one after the other. "
      "Methods that take fields are collective.")
      .def(
          "__init__",
          [](Wilson* self, const onehop::lattice::Gauge& gauge, double kappa, double csw, bool antiperiodic, int recon,
             const std::string& precision, int lanes, int threads) {
            const nb::gil_scoped_release release;
            new (self) Wilson(gauge, WilsonOptions{kappa, csw, antiperiodic, recon,
                                                   onehop::lattice::precision_from_string(precision), lanes, threads});
          },
          "gauge"_a, "kappa"_a, "csw"_a, "antiperiodic"_a, "recon"_a, "precision"_a, "lanes"_a, "threads"_a,
          "Make the operator of a gauge field. Collective.\n\n"
          "Parameters\n----------\n"
          "gauge : LatticeGauge\n    Links, which are copied.\n"
          "kappa : float\n    Hopping parameter.\n"
          "csw : float\n    Clover coefficient; 0: no clover term.\n"
          "antiperiodic : bool\n    Boundary condition in time.\n"
          "recon : int\n    Real numbers kept per link: 18 or 12.\n"
          "precision : str\n    Precision of `apply`, `dslash` and `precondition`.\n"
          "lanes : int\n    Largest number of lanes; 0: those of the processor's vectors.\n"
          "threads : int\n    Threads of this rank; 0: its share of the cores.")
      .def_prop_ro(
          "lanes", [](const Wilson& w) { return w.geometry().spec().lanes; }, "Sites in a vector.")
      .def_prop_ro("threads", &Wilson::threads, "Threads of this rank.")
      .def(
          "dslash",
          [](Wilson& w, const Memory& f, bool dagger) {
            return released([&] { return w.dslash(numbers(f), dagger); });
          },
          "fields"_a, "dagger"_a, "Apply the hopping term D, or its adjoint.")
      .def(
          "apply",
          [](Wilson& w, const Memory& f, bool dagger) { return released([&] { return w.apply(numbers(f), dagger); }); },
          "fields"_a, "dagger"_a, "Apply M, or its adjoint.")
      .def(
          "precondition",
          [](Wilson& w, const Memory& f, bool dagger) {
            return released([&] { return w.precondition(numbers(f), dagger); });
          },
          "fields"_a, "dagger"_a,
          "Apply the even-odd preconditioned operator A - kappa^2 D A^-1 D on even sites, or its adjoint. Odd sites of "
          "the "
          "result are 0.")
      .def("solve", &solve, "source"_a, "options"_a, "cgnr"_a, "schwarz"_a, "progress"_a.none(),
           nb::sig("def solve(self, source: Memory, options: LatticeSolverOptions, cgnr: bool, schwarz: int, "
                   "progress: object) -> tuple[NDArray[numpy.complex128], LatticeSolverReport]"),
           "Solve M x = b with even-odd preconditioning. Returns the solution and the report.\n\n"
           "Parameters\n----------\n"
           "source : Memory\n    Right-hand sides.\n"
           "options : LatticeSolverOptions\n    Options of the solver.\n"
           "cgnr : bool\n    Use conjugate gradients on the normal equations instead of BiCGStab.\n"
           "schwarz : int\n    Number of Schwarz preconditioner steps (BiCGStab only).\n"
           "progress : callable, optional\n    Called as progress(iteration, residual).");
  module.def(
      "lattice_clover_leaves",
      [](const onehop::lattice::Gauge& gauge) {
        return released([&] { return onehop::lattice::clover_leaves(gauge); });
      },
      "gauge"_a,
      "Compute the field strength F of every site of the block from its clover leaves: [site][plane][row][column]. "
      "Collective.");
  module.def(
      "lattice_clover_blocks",
      [](const Memory& strength, double weight, bool inverse) {
        return released([&] {
          auto blocks = onehop::lattice::clover_blocks(numbers(strength), weight);
          if (inverse) blocks = onehop::lattice::inverse_blocks(blocks);
          return onehop::lattice::whole_blocks(blocks);
        });
      },
      "clover_leaves"_a, "weight"_a, "inverse"_a,
      "Compute the blocks of the clover term, or their inverses: [site][half][row][column].");
  module.def("lattice_targets", &onehop::lattice::su3::array_targets,
             "List the kinds of processors whose kernels this processor can run.");
  module.def("lattice_use_target", &onehop::lattice::su3::use_array_target, "name"_a,
             "Select the kernels of a kind of processor for this process; \"\" selects the best one.");
}
