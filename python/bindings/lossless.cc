#include "onehop/lossless.h"

#include <string>

#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

using onehop::element_type_from_string;

void bind_lossless(nb::module_& module) {
  module.def(
      "lossless_most_bytes",
      [](const std::string& type, std::int64_t elements) {
        return onehop::lossless_most_bytes(element_type_from_string(type), elements);
      },
      "type"_a, "elements"_a, "Return the most bytes that `elements` numbers take.");
  module.def(
      "lossless_encode",
      [](const std::string& type, nb::handle source, nb::handle wire) {
        const Memory from(source, false, "source");
        const Memory to(wire, true, "wire");
        const nb::gil_scoped_release released;
        return onehop::lossless_encode(element_type_from_string(type), from.bytes(), to.bytes());
      },
      "type"_a, "source"_a, "wire"_a,
      "Encode the array `source` into the array `wire`, which must have `lossless_most_bytes` bytes. Returns the "
      "number "
      "of bytes used.");
  module.def(
      "lossless_decode",
      [](const std::string& type, nb::handle wire, nb::handle target) {
        const Memory from(wire, false, "wire");
        const Memory to(target, true, "target");
        const nb::gil_scoped_release released;
        onehop::lossless_decode(element_type_from_string(type), from.bytes(), to.bytes());
      },
      "type"_a, "wire"_a, "target"_a, "Decode exactly the bytes `wire` into the array `target`.");
}
