// What the environment of a process decides: the instruction set that kernels use.
#include "python/bindings/bindings.h"
#include "src/base/cpu.h"

namespace {

std::vector<std::string> simd_levels() {
  std::vector<std::string> names;
  for (const onehop::cpu::Level each : onehop::cpu::levels()) names.emplace_back(to_string(each));
  return names;
}

}  // namespace

void bind_environment(nb::module_& module) {
  module.def("simd_levels", &simd_levels,
             "The instruction sets that this processor supports, the best last: values of ONEHOP_SIMD.");
  module.def(
      "simd_level", [] { return std::string(to_string(onehop::cpu::level())); },
      "The instruction set that every kernel uses. Raises BadInput if ONEHOP_SIMD names none that this processor "
      "supports.");
}
