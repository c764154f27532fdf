#include "onehop/schedule.h"

#include <nanobind/operators.h>
#include <nanobind/stl/string_view.h>

#include <nanobind/stl/variant.h>
#include <variant>

#include "python/bindings/bindings.h"
#include "src/base/text.h"

using onehop::ArraySpec;
using onehop::Place;
using onehop::Round;
using onehop::Schedule;
using onehop::Slice;
using onehop::Transfer;
using onehop::base::counted;

namespace {

using Integers = std::vector<std::int64_t>;

// Python's strings may contain lone surrogates. They are passed on, so that the JSON reader reports their place.
nb::bytes utf8(const nb::str& text) { return nb::cast<nb::bytes>(text.attr("encode")("utf-8", "surrogatepass")); }

std::string_view view(const nb::bytes& bytes) { return {static_cast<const char*>(bytes.data()), bytes.size()}; }

void bind_parts(nb::module_& module) {
  nb::class_<ArraySpec>(module, "ArraySpec", "An array of a schedule. Every rank provides one.")
      .def(
          "__init__",
          [](ArraySpec* self, std::string name, const std::variant<std::int64_t, Integers>& elements,
             std::int64_t element_bytes, const std::string& type) {
            const auto* one = std::get_if<std::int64_t>(&elements);
            new (self) ArraySpec{std::move(name), element_bytes, onehop::element_type_from_string(type),
                                 one != nullptr ? Integers{*one} : std::get<Integers>(elements)};
          },
          "name"_a, "elements"_a, "element_bytes"_a = 8, "type"_a = "bytes",
          "Describe an array: its name in messages, its number of elements (one value for all ranks, or one per rank), "
          "the bytes of an element, and its type (bytes, float32, float64, int32 or int64).")
      .def_ro("name", &ArraySpec::name, "Name in messages.")
      .def_ro("element_bytes", &ArraySpec::element_bytes, "Bytes of one element.")
      .def_prop_ro(
          "type", [](const ArraySpec& a) { return onehop::to_string(a.type); },
          "Type of an element: bytes, float32, float64, int32 or int64.")
      .def_prop_ro("elements", tuple_of(&ArraySpec::elements),
                   "Number of elements: one value for all ranks, or one per rank.")
      .def("elements_on", &ArraySpec::elements_on, "rank"_a, "Return the number of elements on a rank.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const ArraySpec& a) {
        return nb::str("ArraySpec({!r}, elements={}, element_bytes={}, type={!r})")
            .format(a.name, as_tuple(a.elements), a.element_bytes, onehop::to_string(a.type));
      });

  nb::class_<Place>(module, "Place", "One end of a transfer: a slice of an array on a rank.")
      .def(
          "__init__",
          [](Place* self, int rank, int array, Slice slice) { new (self) Place{rank, array, std::move(slice)}; },
          "rank"_a, "array"_a, "slice"_a)
      .def_ro("rank", &Place::rank, "Rank that holds the array.")
      .def_ro("array", &Place::array, "Index of the array in the schedule.")
      .def_ro("slice", &Place::slice, "Elements of the array.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Place& p) { return nb::str("Place({}, {}, {!r})").format(p.rank, p.array, p.slice); });

  nb::class_<Transfer>(module, "Transfer",
                       "One movement of data from a place to a place. Between a rank and itself it is a local copy.")
      .def(
          "__init__",
          [](Transfer* self, Place from, Place to, const std::string& combine, const std::string& codec) {
            new (self) Transfer{std::move(from), std::move(to), onehop::combine_from_string(combine),
                                onehop::codec_from_string(codec)};
          },
          "from_"_a, "to"_a, "combine"_a = "replace", "codec"_a = "raw",
          "Make a transfer. `combine` says how arriving elements combine with those of the target: replace, add, min, "
          "max or prod. `codec` encodes them on the wire.")
      .def_ro("from_", &Transfer::from, "Place that is read.")
      .def_ro("to", &Transfer::to, "Place that is written.")
      .def_prop_ro(
          "combine", [](const Transfer& t) { return onehop::to_string(t.combine); },
          "How arriving elements combine with those of the target.")
      .def_prop_ro(
          "codec", [](const Transfer& t) { return onehop::to_string(t.codec); }, "Codec on the wire.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Transfer& t) {
        return nb::str("Transfer({!r}, {!r}, combine={!r}, codec={!r})")
            .format(t.from, t.to, onehop::to_string(t.combine), onehop::to_string(t.codec));
      });

  nb::class_<Round>(module, "Round",
                    "Transfers that happen at the same time: each reads the contents from before the round.")
      .def(
          "__init__", [](Round* self, std::vector<Transfer> transfers) { new (self) Round{std::move(transfers)}; },
          "transfers"_a)
      .def_prop_ro(
          "permutation",
          [](const Round& r) { return r.permutation ? nb::cast(as_tuple(r.permutation->to)) : nb::object(nb::none()); },
          nb::sig("def permutation(self) -> tuple[int, ...] | None"),
          "Target of each index bit if the round is a permutation of bits, otherwise None.")
      .def_prop_ro("transfers", tuple_of(&Round::transfers), "Transfers of the round.")
      .def("__len__", [](const Round& r) { return r.transfers.size(); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Round& r) { return nb::str("Round({!r})").format(as_tuple(r.transfers)); });
}

}  // namespace

void bind_schedule(nb::module_& module) {
  bind_parts(module);
  nb::class_<Schedule>(
      module, "Schedule",
      "Rounds of transfers between ranks, as pure data. A schedule can be counted, verified, saved, and executed by a "
      "`Plan`.")
      .def(
          "__init__",
          [](Schedule* self, std::string name, int ranks, std::vector<ArraySpec> arrays, std::vector<Round> rounds,
             std::vector<Place> must_cover) {
            new (self) Schedule{std::move(name), ranks, std::move(arrays), std::move(rounds), std::move(must_cover)};
          },
          "name"_a, "ranks"_a, "arrays"_a, "rounds"_a, "must_cover"_a = std::vector<Place>{},
          "Make a schedule from its name, number of ranks, arrays and rounds. `must_cover` lists places that the "
          "rounds together must write; `verify` checks them.")
      .def_ro("name", &Schedule::name, "Name in messages.")
      .def_ro("ranks", &Schedule::ranks, "Number of ranks.")
      .def_prop_ro("arrays", tuple_of(&Schedule::arrays), "Arrays that every rank provides.")
      .def_prop_ro("rounds", tuple_of(&Schedule::rounds), "Rounds in the order of execution.")
      .def_prop_ro("must_cover", tuple_of(&Schedule::must_cover), "Places that the rounds together must write.")
      .def("part", &Schedule::part, "rank"_a, "Return the schedule with only the transfers of one rank.")
      .def("bytes", &Schedule::bytes, "transfer"_a, "Return the bytes on the wire of a transfer of this schedule.")
      .def("describe", &onehop::describe, "round"_a, "transfer"_a, "Describe a transfer in words, as messages do.")
      .def("to_json", &Schedule::to_json, "indent"_a = -1, nb::call_guard<nb::gil_scoped_release>(),
           "Return the schedule as JSON text. `indent` below 0 writes one line.")
      .def_static(
          "from_json",
          [](const nb::str& text) {
            const auto bytes = utf8(text);
            const auto characters = view(bytes);
            const nb::gil_scoped_release released;
            return Schedule::from_json(characters);
          },
          nb::sig("def from_json(text: str) -> Schedule"), "text"_a,
          "Read a schedule from the text of `to_json`. Raises BadInput if the text is no schedule.")
      .def(
          "save",
          [](const Schedule& self, const nb::object& path) {
            nb::module_::import_("onehop.output").attr("write_file")(path, self.to_json(1) + "\n", "the schedule");
          },
          nb::sig("def save(self, path: str | os.PathLike[str]) -> None"), "path"_a,
          "Write the schedule to a JSON file. If that fails, an existing file stays as it was. Raises BadInput if the "
          "file cannot be written.")
      .def_static(
          "load",
          [](const nb::object& path) {
            const nb::object bytes =
                nb::module_::import_("onehop.output").attr("file_path")(path, "file").attr("read_bytes")();
            return Schedule::from_json(view(nb::cast<nb::bytes>(bytes)));
          },
          nb::sig("def load(path: str | os.PathLike[str]) -> Schedule"), "path"_a,
          "Read a schedule from a JSON file. Raises BadInput if the file is no schedule.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__getstate__", [](const Schedule& self) { return self.to_json(); })
      .def("__setstate__",
           [](Schedule& self, const std::string& json) { new (&self) Schedule(Schedule::from_json(json)); })
      .def("__repr__", [](const Schedule& s) {
        std::int64_t transfers = 0;
        for (const auto& round : s.rounds) transfers += std::ssize(round.transfers);
        return nb::str("<Schedule {!r}: {}, {}, {}, {}>")
            .format(s.name, counted(s.ranks, "rank"), counted(std::ssize(s.arrays), "array"),
                    counted(std::ssize(s.rounds), "round"), counted(transfers, "transfer"));
      });
  module.def(
      "merge", [](const std::vector<Schedule>& parts) { return onehop::merge(parts); }, "parts"_a,
      "Merge the parts of all ranks (see `Schedule.part`) into the whole schedule.");
}
