#include "onehop/verify.h"

#include <nanobind/stl/string_view.h>

#include "python/bindings/bindings.h"

using onehop::Violation;

void bind_verify(nb::module_& module) {
  nb::class_<Violation>(module, "Violation", "A rule that a schedule breaks, and where.")
      .def_prop_ro(
          "rule", [](const Violation& v) { return onehop::to_string(v.rule); }, "shape, writes, reads or coverage.")
      .def_ro("round", &Violation::round, "The round; -1 for coverage.")
      .def_ro("transfer", &Violation::transfer, "The transfer in its round; for coverage the index in must_cover.")
      .def_ro("other", &Violation::other, "The transfer it collides with; -1 if none.")
      .def_ro("message", &Violation::message, "What is wrong, in words.")
      .def("__repr__", [](const Violation& v) {
        return nb::str("<Violation {}: {}>").format(onehop::to_string(v.rule), v.message);
      });
  module.def("verify", &onehop::verify, "schedule"_a, "limit"_a = 10, nb::call_guard<nb::gil_scoped_release>(),
             "The first `limit` rules that a schedule breaks; an empty list is the proof that nothing is lost or "
             "overwritten.");
  module.def("verify_or_throw", &onehop::verify_or_throw, "schedule"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Raises BadInput with the first violation's message, if there is one.");
}
