#include "onehop/quantum/compiled.h"

#include "onehop/quantum/program.h"
#include "python/bindings/quantum_arrays.h"

using onehop::Group;
using onehop::quantum::Circuit;
using onehop::quantum::Compiled;
using onehop::quantum::CompileOptions;
using onehop::quantum::Complex;
using onehop::quantum::Gradients;
using onehop::quantum::PauliSum;
using onehop::quantum::ProgramOptions;

namespace {

using Bindings = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void make(Compiled* self, const Circuit& circuit, const Group& group, const std::string& precision, int threads,
          std::int64_t staging, double search_seconds, int reproducible, std::string device) {
  CompileOptions options;
  options.precision = precision_from(precision);
  options.state = state_options(threads, staging, std::move(device));
  options.search_seconds = search_seconds;
  options.reproducible = reproducible;
  const nb::gil_scoped_release released;
  new (self) Compiled(circuit, group, options);
}

std::vector<Complex> expectations(Compiled& compiled, const std::vector<double>& values,
                                  const std::vector<PauliSum>& sums) {
  return compiled.expectations(values, sums);
}

}  // namespace

void bind_quantum_compiled(nb::module_& module) {
  nb::class_<Gradients>(module, "Gradients", "Expectation values with their derivatives; the same on every rank.")
      .def_ro("values", &Gradients::values)
      .def_prop_ro(
          "derivatives",
          [](const Gradients& g) {
            return nb::ndarray<nb::numpy, const double, nb::ndim<1>>(g.derivatives.data(), {g.derivatives.size()},
                                                                     nb::handle())
                .cast(nb::rv_policy::copy);
          },
          nb::sig("def derivatives(self) -> NDArray[numpy.float64]"))
      .def_ro("forward_seconds", &Gradients::forward_seconds)
      .def_ro("backward_seconds", &Gradients::backward_seconds)
      .def_ro("backward_passes", &Gradients::backward_passes)
      .def_ro("backward_multiply_adds", &Gradients::backward_multiply_adds);
  nb::class_<Compiled>(module, "Compiled")
      .def("__init__", &make, "circuit"_a, "group"_a, nb::kw_only(), "precision"_a = "double", "threads"_a = 0,
           "staging"_a = 0, "search_seconds"_a = 1.0, "reproducible"_a = 0, "device"_a = "cpu")
      .def_prop_ro("parameters", tuple_of(&Compiled::parameters))
      .def_prop_ro("ranks", &Compiled::ranks)
      .def_prop_ro("placement", &Compiled::placement, nb::rv_policy::reference_internal)
      .def(
          "run",
          [](Compiled& c, const std::vector<double>& values) -> onehop::quantum::State& { return c.run(values); },
          "values"_a, nb::rv_policy::reference_internal, nb::call_guard<nb::gil_scoped_release>())
      .def("expectations", &expectations, "values"_a, "sums"_a, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "simulate",
          [](Compiled& c, const std::vector<double>& values, const ProgramOptions& options) {
            return c.simulate(values, options);
          },
          "values"_a, "options"_a, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "run_many",
          [](Compiled& c, const Bindings& bindings, const std::vector<PauliSum>& sums) {
            const std::size_t count = bindings.shape(0);
            std::vector<Complex> values;
            {
              const nb::gil_scoped_release released;
              values = c.run_many({bindings.data(), bindings.size()}, count, sums);
            }
            return as_rows(std::move(values), count);
          },
          "bindings"_a, "sums"_a)
      .def(
          "gradients",
          [](Compiled& c, const std::vector<double>& values, const std::vector<PauliSum>& sums,
             const std::vector<double>& weights,
             bool variance) { return c.gradients(values, sums, weights, variance); },
          "values"_a, "sums"_a, "weights"_a = std::vector<double>(), "variance"_a = false,
          nb::call_guard<nb::gil_scoped_release>());
}
