#include "onehop/machine/machine.h"

#include <nanobind/operators.h>
#include <nanobind/stl/string_view.h>

#include "machine/model/fields.h"
#include "onehop/error.h"
#include "python/bindings/bindings.h"

using onehop::Figure;
using onehop::Level;
using onehop::Machine;
using onehop::TimeTable;

namespace {

template <class Class, class Figures, class Tables>
void bind_fields(Class& bound, const Figures& figures, const Tables& tables) {
  for (const auto& field : figures) bound.def_ro(field.name, field.member, field.meaning);
  for (const auto& field : tables) bound.def_ro(field.name, field.member, field.meaning);
}

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
  nb::class_<Level> level(module, "Level", "One level of a machine: what a message between two of its members costs.");
  bind_fields(level, onehop::detail::level_figures, onehop::detail::level_tables);
  level.def_ro("name", &Level::name, "What one unit of the level is called.")
      .def_prop_ro(
          "routing", [](const Level& l) { return onehop::to_string(l.routing); },
          "How the members are joined: all_to_all, mesh, fat_tree, torus or dragonfly.")
      .def_prop_ro("extents", tuple_of(&Level::extents), "Members per dimension or tier.")
      .def_ro("topology", &Level::topology, "Where the extents, links, interfaces and taper come from.")
      .def_ro("links", &Level::links, "Links of one member; on a torus, per direction of each dimension.")
      .def_ro("interfaces", &Level::interfaces, "Network interfaces of one member.")
      .def_prop_ro("taper", tuple_of(&Level::taper), "Capacity above each tier of a fat tree; 1: full bisection.")
      .def_prop_ro("members", &Level::members, "Number of members.")
      .def("__repr__", [](const Level& l) {
        return nb::str("<Level {!r}: {} of {}>").format(l.name, onehop::to_string(l.routing), as_tuple(l.extents));
      });
}

}  // namespace

void bind_machine(nb::module_& module) {
  bind_level(module);
  nb::class_<Machine> machine(
      module, "Machine", "The description of a computer: nested levels of processors and the links that join them.");
  bind_fields(machine, onehop::detail::machine_figures, onehop::detail::machine_tables);
  machine.def_ro("name", &Machine::name, "Name of the machine's file.")
      .def_ro("title", &Machine::title, "One line that describes the machine.")
      .def_ro("device", &Machine::device, "Whether each processor is a card.")
      .def_prop_ro("levels", tuple_of(&Machine::levels), "Levels, innermost first.")
      .def_prop_ro("processors", &Machine::processors, "Number of processors.")
      .def("job", &Machine::job, "processors"_a,
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
