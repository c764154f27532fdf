#include "onehop/machine/machine.h"

#include <nanobind/operators.h>
#include <nanobind/stl/string_view.h>

#include "onehop/error.h"
#include "python/bindings/bindings.h"

using onehop::Figure;
using onehop::Level;
using onehop::Machine;
using onehop::TimeTable;

namespace {

void bind_level(nb::module_& module) {
  nb::class_<Figure>(module, "Figure", "A number of a machine with its origin.")
      .def_ro("value", &Figure::value, "Value in seconds, bytes, or bytes per second; 0 if absent.")
      .def_prop_ro(
          "basis", [](const Figure& f) { return onehop::to_string(f.basis); }, "published, measured or guessed.")
      .def_ro("source", &Figure::source, "Paper, data sheet, or the command that measured the number.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Figure& f) {
        return nb::str("Figure({}, {!r}, {!r})").format(f.value, onehop::to_string(f.basis), f.source);
      });
  nb::class_<TimeTable>(module, "TimeTable", "Measured times of something by its bytes, with their origin.")
      .def_prop_ro(
          "points",
          [](const TimeTable& t) {
            nb::list list;
            for (const auto& [bytes, seconds] : t.points) list.append(nb::make_tuple(bytes, seconds));
            return nb::tuple(list);
          },
          nb::sig("def points(self) -> tuple[tuple[float, float], ...]"), "Bytes and seconds; empty if absent.")
      .def_prop_ro(
          "basis", [](const TimeTable& t) { return onehop::to_string(t.basis); }, "published, measured or guessed.")
      .def_ro("source", &TimeTable::source, "Paper, data sheet, or the command that measured the numbers.")
      .def(
          "seconds",
          [](const TimeTable& t, double bytes) {
            if (t.empty()) throw onehop::BadInput("a table of times: expected points, found none");
            return t.seconds(bytes);
          },
          "bytes"_a,
          "Return the time of so many bytes: between two points its logarithm is linear in that of the bytes.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__",
           [](const TimeTable& t) { return nb::str("<TimeTable with {} points>").format(t.points.size()); });
  nb::class_<Level>(module, "Level", "One level of a machine: what a message between two of its members costs.")
      .def_ro("name", &Level::name, "What one unit of the level is called.")
      .def_prop_ro(
          "routing", [](const Level& l) { return onehop::to_string(l.routing); },
          "How the members are joined: all_to_all, mesh, fat_tree, torus or dragonfly.")
      .def_prop_ro("extents", tuple_of(&Level::extents), "Members per dimension or tier.")
      .def_ro("topology", &Level::topology, "Where the extents, links, interfaces and taper come from.")
      .def_ro("latency", &Level::latency, "Seconds between neighbours, from the first byte sent to the first received.")
      .def_ro("hop_latency", &Level::hop_latency, "Seconds for every hop beyond the first.")
      .def_ro("overhead", &Level::overhead, "Seconds that a processor is busy with each message it sends or receives.")
      .def_ro("gap", &Level::gap, "Least seconds between two messages of one processor.")
      .def_ro("bandwidth", &Level::bandwidth, "Bytes per second of one link in one direction.")
      .def_ro("one_way", &Level::one_way, "Times of a message that flows alone.")
      .def_ro("both_ways", &Level::both_ways,
              "Times of two messages that flow between the same members in opposite directions.")
      .def_ro("in_collective", &Level::in_collective,
              "Times of two short messages in opposite directions inside a collective operation.")
      .def_ro("links", &Level::links, "Links of one member; on a torus, per direction of each dimension.")
      .def_ro("injection", &Level::injection, "Bytes per second that one member sends at most over all its links.")
      .def_ro("interfaces", &Level::interfaces, "Network interfaces of one member.")
      .def_prop_ro("taper", tuple_of(&Level::taper), "Capacity above each tier of a fat tree; 1: full bisection.")
      .def_ro("local_bandwidth", &Level::local_bandwidth,
              "Bytes per second between two routers of a dragonfly's group in one direction.")
      .def_ro("group_bandwidth", &Level::group_bandwidth,
              "Bytes per second between two groups of a dragonfly in one direction.")
      .def_prop_ro("members", &Level::members, "Number of members.")
      .def("__repr__", [](const Level& l) {
        return nb::str("<Level {!r}: {} of {}>").format(l.name, onehop::to_string(l.routing), as_tuple(l.extents));
      });
}

}  // namespace

void bind_machine(nb::module_& module) {
  bind_level(module);
  nb::class_<Machine>(module, "Machine",
                      "The description of a computer: nested levels of processors and the links that join them.")
      .def_ro("name", &Machine::name, "Name of the machine's file.")
      .def_ro("title", &Machine::title, "One line that describes the machine.")
      .def_prop_ro("levels", tuple_of(&Machine::levels), "Levels, innermost first.")
      .def_ro("memory_bandwidth", &Machine::memory_bandwidth, "Bytes per second of one processor's memory.")
      .def_ro("memory", &Machine::memory, "Bytes of memory per processor.")
      .def_ro("copies", &Machine::copies, "Times in which a processor copies in its memory.")
      .def_ro("updates", &Machine::updates,
              "Times in which a processor exchanges two parts of its memory in place, by the bytes of both.")
      .def_ro("shared_updates", &Machine::shared_updates,
              "Times in which two processors exchange parts of arrays that they share, by the bytes of each.")
      .def_ro("packed_piece", &Machine::packed_piece,
              "Seconds for each contiguous piece of a message that a processor gathers or scatters.")
      .def_ro("packed_pieces", &Machine::packed_pieces,
              "Seconds for each contiguous piece of a message, by the bytes of the piece.")
      .def_ro("copied_piece", &Machine::copied_piece,
              "Seconds for each contiguous piece that a processor copies inside its memory.")
      .def_ro("used_line", &Machine::used_line,
              "Seconds to write a word of a cache line before and read it after an exchange; 0 if not known.")
      .def_ro("multiply_adds_double", &Machine::multiply_adds_double,
              "Real multiply-adds per second of one processor in double precision; 0 if they are not known.")
      .def_ro("multiply_adds_single", &Machine::multiply_adds_single,
              "Real multiply-adds per second of one processor in single precision; 0 if they are not known.")
      .def_prop_ro("processors", &Machine::processors, "Number of processors.")
      .def(
          "job",
          [](const Machine& machine, const nb::object& processors) {
            return machine.job(whole_number<std::int64_t>(processors, "processors"));
          },
          nb::sig("def job(self, processors: int) -> Machine"), "processors"_a.none(),
          "Return the part of the machine that a job with this many processors gets: the smallest box that holds "
          "them.")
      .def("to_json", &Machine::to_json, "indent"_a = -1,
           "Return the machine as JSON text. `indent` below 0 writes one line.")
      .def_static("from_json", &Machine::from_json, "text"_a,
                  "Read a machine from the text of `to_json`. Raises BadInput with the place of an error.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__getstate__", [](const Machine& self) { return self.to_json(); })
      .def("__setstate__",
           [](Machine& self, const std::string& json) { new (&self) Machine(Machine::from_json(json)); })
      .def("__repr__", [](const Machine& m) {
        return nb::str("<Machine {!r}: {} processors, {} levels>").format(m.name, m.processors(), m.levels.size());
      });
}
