// The environment variables of onehop, and the instruction set that kernels use.
#include <nanobind/stl/string_view.h>

#include "python/bindings/bindings.h"
#include "src/base/cpu.h"
#include "src/base/env.h"
#include "src/base/trace.h"

namespace {

std::vector<std::string> simd_levels() {
  std::vector<std::string> names;
  for (const onehop::cpu::Level each : onehop::cpu::levels()) names.emplace_back(to_string(each));
  return names;
}

nb::list environment_variables() {
  nb::list found;
  for (const onehop::env::Variable& each : onehop::env::variables()) {
    const auto text = [](std::string_view view) { return nb::str(view.data(), view.size()); };
    nb::dict entry;
    entry["name"] = text(each.name);
    entry["values"] = onehop::env::words(each.values);
    entry["default"] = text(each.default_value);
    entry["meaning"] = text(each.meaning);
    entry["read_in"] = text(each.read_in);
    entry["set_by"] = text(each.set_by);
    found.append(entry);
  }
  return found;
}

}  // namespace

void bind_environment(nb::module_& module) {
  module.def(
      "simd_levels", &simd_levels,
      "List the instruction sets that this processor supports, the best one last. They are values of ONEHOP_SIMD.");
  module.def(
      "simd_level", [] { return std::string(to_string(onehop::cpu::level())); },
      "Return the instruction set that all kernels use. Raises BadInput if ONEHOP_SIMD names one that this processor "
      "does not support.");
  module.def(
      "environment_variables", &environment_variables, nb::sig("def environment_variables() -> list[dict[str, str]]"),
      "List the environment variables sorted by name, each as name, values, default, meaning, read_in and set_by.");
  module.def("environment_number", &onehop::env::number, "name"_a,
             "Return the value of an environment variable that is a number, or None if it is unset or empty. Raises "
             "BadInput for an invalid value.");
  module.def("check_environment", &onehop::env::check,
             "Check ONEHOP_SIMD and all environment variables that are numbers. Raises BadInput for an invalid value.");
  module.def("merge_trace", &onehop::trace::merge, "file"_a, "complete"_a,
             "Make the trace of a run from the files of its ranks, and remove them. Return the number of ranks; 0 if "
             "there are no such files. With `complete`, only if all ranks have ended. Raises BadInput.");
}
