#include "onehop/lattice/smearing.h"

#include "python/bindings/lattice_arrays.h"

using onehop::lattice::Gauge;
using onehop::lattice::Links;
using onehop::lattice::PathWeights;
using onehop::lattice::precision_from_string;

namespace {

NumberArray<std::complex<double>> as_links(Links links, const Gauge& gauge) {
  return block_array(std::move(links), gauge.geometry(), {gauge.geometry().block().size(), 3, 3});
}

auto fat_links(const Gauge& gauge, const std::array<double, 6>& weights, const std::string& precision) {
  const auto& [one, three, five, seven, lepage, long_links] = weights;
  auto found = released([&] {
    return onehop::lattice::fat_links(gauge, {one, three, five, seven, lepage, long_links},
                                      precision_from_string(precision));
  });
  return std::tuple(as_links(std::move(found.fat), gauge), as_links(std::move(found.long_links), gauge));
}

auto hisq_links(const Gauge& gauge, double naik_epsilon, const std::string& precision) {
  auto found =
      released([&] { return onehop::lattice::hisq_links(gauge, naik_epsilon, precision_from_string(precision)); });
  return std::tuple(as_links(std::move(found.fat), gauge), as_links(std::move(found.long_links), gauge),
                    as_links(std::move(found.unitary), gauge));
}

// The conventional weights; `parameter` is the u0 of asqtad, or the Naik epsilon of HISQ's second level.
PathWeights weights_of(const std::string& name, double parameter) {
  if (name == "fat3") return onehop::lattice::fat3_weights();
  if (name == "fat5") return onehop::lattice::fat5_weights();
  if (name == "fat7") return onehop::lattice::fat7_weights();
  return name == "asqtad" ? onehop::lattice::asqtad_weights(parameter)
                          : onehop::lattice::hisq_second_weights(parameter);
}

}  // namespace

void bind_lattice_smearing(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  module.def("lattice_fat_links", &fat_links, "gauge"_a, "weights"_a, "precision"_a);
  module.def("lattice_hisq_links", &hisq_links, "gauge"_a, "naik_epsilon"_a, "precision"_a);
  module.def(
      "lattice_path_weights",
      [](const std::string& name, double parameter) {
        const PathWeights w = weights_of(name, parameter);
        return std::tuple(w.one, w.three, w.five, w.seven, w.lepage, w.long_links);
      },
      "name"_a, "parameter"_a);
  module.def(
      "lattice_smear_ape",
      [](Gauge& gauge, double alpha, int steps, bool space_only) {
        onehop::lattice::smear_ape(gauge, alpha, {steps, space_only});
      },
      "gauge"_a, "alpha"_a, "steps"_a, "space_only"_a, release());
  module.def(
      "lattice_smear_hyp",
      [](Gauge& gauge, const std::array<double, 3>& alpha, int steps, bool space_only) {
        onehop::lattice::smear_hyp(gauge, {alpha[0], alpha[1], alpha[2]}, {steps, space_only});
      },
      "gauge"_a, "alpha"_a, "steps"_a, "space_only"_a, release());
  module.def(
      "lattice_smear_stout",
      [](Gauge& gauge, double rho, int steps, bool space_only) {
        onehop::lattice::smear_stout(gauge, rho, {steps, space_only});
      },
      "gauge"_a, "rho"_a, "steps"_a, "space_only"_a, release());
}
