#include "onehop/verify.h"

#include <nanobind/stl/string_view.h>

#include "python/bindings/bindings.h"

using onehop::Violation;

void bind_verify(nb::module_& module) {
  nb::class_<Violation>(module, "Violation", "A rule that a schedule breaks, with the place.")
      .def_prop_ro(
          "rule", [](const Violation& v) { return onehop::to_string(v.rule); },
          "Rule: shape, writes, reads or coverage.")
      .def_ro("round", &Violation::round, "Index of the round; -1 for coverage.")
      .def_ro("transfer", &Violation::transfer,
              "Index of the transfer in its round; for coverage, the index in must_cover.")
      .def_ro("other", &Violation::other, "Index of the transfer that it collides with; -1 if there is none.")
      .def_ro("message", &Violation::message, "Description of the violation.")
      .def("__repr__", [](const Violation& v) {
        return nb::str("<Violation {}: {}>").format(onehop::to_string(v.rule), v.message);
      });
  module.def("verify", &onehop::verify, "schedule"_a, "limit"_a = 10, nb::call_guard<nb::gil_scoped_release>(),
             "Return the first `limit` violations of a schedule. An empty list proves that no data is lost or "
             "overwritten.");
  module.def("verify_or_throw", &onehop::verify_or_throw, "schedule"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Verify a schedule; raise BadInput with the message of the first violation, if there is one.");
}
