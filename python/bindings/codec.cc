#include "onehop/codec.h"

#include <string>

#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

using onehop::codec_from_string;
using onehop::element_type_from_string;

void bind_codec(nb::module_& module) {
  module.def(
      "encoded_bytes",
      [](const std::string& codec, const std::string& type, std::int64_t elements) {
        return onehop::encoded_bytes(codec_from_string(codec), element_type_from_string(type), elements);
      },
      "codec"_a, "type"_a, "elements"_a, "Return the bytes on the wire of an array of `elements` numbers.");
  module.def(
      "most_ranks", [](const std::string& codec) { return onehop::most_ranks(codec_from_string(codec)); }, "codec"_a,
      "Return the largest group whose reductions take a codec.");
  module.def(
      "encode",
      [](const std::string& codec, const std::string& type, nb::handle source, nb::handle wire) {
        const Memory from(source, false, "source");
        const Memory to(wire, true, "wire");
        const nb::gil_scoped_release released;
        onehop::encode(codec_from_string(codec), element_type_from_string(type), from.bytes(), to.bytes());
      },
      "codec"_a, "type"_a, "source"_a, "wire"_a,
      "Encode the numbers of the array `source` into the array `wire`, which must have `encoded_bytes` bytes.");
  module.def(
      "decode",
      [](const std::string& codec, const std::string& type, nb::handle wire, nb::handle target, bool add) {
        const Memory from(wire, false, "wire");
        const Memory to(target, true, "target");
        const nb::gil_scoped_release released;
        const auto decode = add ? &onehop::decode_add : &onehop::decode;
        decode(codec_from_string(codec), element_type_from_string(type), from.bytes(), to.bytes());
      },
      "codec"_a, "type"_a, "wire"_a, "target"_a, "add"_a,
      "Decode `wire` into the array `target`, or with `add` add the numbers to it.");
}
