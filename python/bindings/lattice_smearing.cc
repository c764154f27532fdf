#include "onehop/lattice/smearing.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/complex.h>

#include "python/bindings/bindings.h"

using onehop::lattice::Gauge;
using onehop::lattice::Links;
using onehop::lattice::PathWeights;

namespace {

nb::ndarray<nb::numpy, std::complex<double>> as_array(Links values, const Gauge& gauge) {
  auto* held = new Links(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Links*>(p); });
  const auto block = gauge.geometry().block();
  std::vector<std::size_t> shape(block.rbegin(), block.rend());
  shape.insert(shape.end(), {block.size(), 3, 3});
  return {held->data(), shape.size(), shape.data(), owner};
}

nb::tuple fat_links(const Gauge& gauge, double one, double three, double five, double seven, double lepage,
                    double long_links, const std::string& precision) {
  onehop::lattice::FatLinks found;
  {
    const nb::gil_scoped_release released;
    found = onehop::lattice::fat_links(gauge, {one, three, five, seven, lepage, long_links},
                                       onehop::lattice::precision_from_string(precision));
  }
  return nb::make_tuple(as_array(std::move(found.fat), gauge), as_array(std::move(found.long_links), gauge));
}

nb::tuple hisq_links(const Gauge& gauge, double naik_epsilon, const std::string& precision) {
  onehop::lattice::HisqLinks found;
  {
    const nb::gil_scoped_release released;
    found = onehop::lattice::hisq_links(gauge, naik_epsilon, onehop::lattice::precision_from_string(precision));
  }
  return nb::make_tuple(as_array(std::move(found.fat), gauge), as_array(std::move(found.long_links), gauge),
                        as_array(std::move(found.unitary), gauge));
}

nb::tuple as_numbers(const PathWeights& w) {
  return nb::make_tuple(w.one, w.three, w.five, w.seven, w.lepage, w.long_links);
}

}  // namespace

void bind_lattice_smearing(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  module.def(
      "lattice_fat_links", &fat_links, "gauge"_a, "one"_a, "three"_a, "five"_a, "seven"_a, "lepage"_a, "long_links"_a,
      "precision"_a,
      "Compute the fat and long links of this rank's block. Arguments: weights of paths of 1, 3, 5 and 7 links, of the "
      "Lepage term and of the long links. Collective.");
  module.def("lattice_hisq_links", &hisq_links, "gauge"_a, "naik_epsilon"_a, "precision"_a,
             "Compute the HISQ fat, long and reunitarised links of this rank's block. Collective.");
  module.def(
      "lattice_path_weights",
      [](const std::string& name, double parameter) {
        if (name == "fat3") return as_numbers(onehop::lattice::fat3_weights());
        if (name == "fat5") return as_numbers(onehop::lattice::fat5_weights());
        if (name == "fat7") return as_numbers(onehop::lattice::fat7_weights());
        if (name == "asqtad") return as_numbers(onehop::lattice::asqtad_weights(parameter));
        return as_numbers(onehop::lattice::hisq_second_weights(parameter));
      },
      "name"_a, "parameter"_a,
      "Return the conventional path weights of fat3, fat5, fat7, asqtad (parameter: u0) or the second step of HISQ "
      "(parameter: Naik epsilon): one, three, five, seven links, Lepage, long links.");
  module.def(
      "lattice_smear_ape",
      [](Gauge& gauge, double alpha, int steps, bool space_only) {
        onehop::lattice::smear_ape(gauge, alpha, {steps, space_only});
      },
      "gauge"_a, "alpha"_a, "steps"_a, "space_only"_a, release(), "Apply APE smearing in place. Collective.");
  module.def(
      "lattice_smear_stout",
      [](Gauge& gauge, double rho, int steps, bool space_only) {
        onehop::lattice::smear_stout(gauge, rho, {steps, space_only});
      },
      "gauge"_a, "rho"_a, "steps"_a, "space_only"_a, release(), "Apply stout smearing in place. Collective.");
}
