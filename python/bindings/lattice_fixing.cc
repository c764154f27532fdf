#include "onehop/lattice/fixing.h"

#include "python/bindings/arrays.h"

using onehop::lattice::FixedGauge;
using onehop::lattice::Gauge;
using onehop::lattice::GaugeCondition;

void bind_lattice_fixing(nb::module_& module) {
  module.def(
      "lattice_fix_gauge",
      [](Gauge& gauge, bool landau, double tolerance, double over_relaxation, int most_sweeps,
         const nb::object& progress) {
        const auto condition = landau ? GaugeCondition::landau : GaugeCondition::coulomb;
        const auto tell = callback<int, double, double>(progress);
        const auto found = released([&] {
          return onehop::lattice::fix_gauge(gauge, {condition, tolerance, over_relaxation, most_sweeps},
                                            [&](const FixedGauge& now) {
                                              if (tell) tell(now.sweeps, now.theta, now.functional);
                                            });
        });
        return std::tuple(found.sweeps, found.theta, found.functional);
      },
      "gauge"_a, "landau"_a, "tolerance"_a, "over_relaxation"_a, "most_sweeps"_a, "progress"_a.none());
}
