// The extension module onehop._core. What a noun can do is bound in the file of its name.
#include "bindings.h"
#include "onehop/version.h"

// NOLINTNEXTLINE: the macro is nanobind's.
NB_MODULE(_core, module) {
  module.doc() = "The C++ library onehop.";
  module.attr("__version__") = onehop::version();
  bind_error(module);
}
