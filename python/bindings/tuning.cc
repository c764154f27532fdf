#include "onehop/tuning.h"

#include "python/bindings/bindings.h"

void bind_tuning(nb::module_& module) {
  module.def("tuning", [] { return onehop::tuning().to_json(); }, "The tuning in force, as JSON.");
  module.def(
      "tuning_origin", [] { return onehop::tuning().origin; }, "\"built in\", or the file that it was read from.");
  module.def("built_in_tuning", [] { return onehop::built_in_tuning().to_json(); }, "The built-in one, as JSON.");
  module.def("tuning_file", &onehop::tuning_file, "Where `onehop tune` keeps its answer.");
  module.def(
      "check_tuning", [](const std::string& json) { return onehop::Tuning::from_json(json).to_json(); }, "json"_a,
      "The same tuning, as onehop reads it. Raises BadInput if it is none.");
}
