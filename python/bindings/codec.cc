#include "onehop/codec_table.h"

#include <string>
#include <vector>

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
  using onehop::CodecInfo;
  nb::class_<CodecInfo>(module, "CodecInfo", "An entry of the table of codecs.")
      .def_prop_ro(
          "name", [](const CodecInfo& info) { return std::string(info.name); }, "The name.")
      .def_ro("block", &CodecInfo::block, "Numbers that share a scale; 1: without a scale.")
      .def_ro("block_bytes", &CodecInfo::block_bytes, "Bytes of a block on the wire; 0: those of the type.")
      .def_ro("levels", &CodecInfo::levels, "The largest code of a format of integers; 0: another format.")
      .def_ro("most_ranks", &CodecInfo::most_ranks, "The largest group whose reductions take it.");
  module.def(
      "codecs", [] { return std::vector<CodecInfo>(onehop::codecs().begin(), onehop::codecs().end()); },
      "Return the table of codecs.");
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
