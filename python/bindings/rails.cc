#include "onehop/machine/rails.h"

#include <nanobind/operators.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "python/bindings/bindings.h"

using onehop::RailAssignment;
using onehop::RailMessage;
using onehop::RailOptions;
using onehop::RailPlan;

namespace {

RailOptions options(std::vector<double> speeds, const std::string& rule, bool cut, std::int64_t min_piece) {
  return {std::move(speeds), onehop::rail_rule_from_string(rule), cut, min_piece};
}

RailPlan assign(const std::vector<std::tuple<int, int, std::int64_t>>& messages, std::vector<double> speeds,
                const std::string& rule, bool cut, std::int64_t min_piece) {
  std::vector<RailMessage> list;
  for (const auto& [from, to, bytes] : messages) list.push_back({from, to, bytes});
  return onehop::assign_rails(list, options(std::move(speeds), rule, cut, min_piece));
}

std::vector<std::vector<RailAssignment>> assign_schedule(const onehop::Schedule& schedule,
                                                         const std::vector<int>& hosts, std::vector<double> speeds,
                                                         const std::string& rule, bool cut, std::int64_t min_piece) {
  return onehop::assign_rails(schedule, hosts, options(std::move(speeds), rule, cut, min_piece));
}

}  // namespace

void bind_rails(nb::module_& module) {
  nb::class_<RailAssignment>(module, "RailAssignment", "A piece of a message, and the rail that carries it.")
      .def(
          "__init__",
          [](RailAssignment* self, int from, int to, int rail, std::int64_t first_byte, std::int64_t bytes) {
            new (self) RailAssignment{from, to, rail, first_byte, bytes};
          },
          "from_"_a, "to"_a, "rail"_a, "first_byte"_a, "bytes"_a)
      .def_ro("from_", &RailAssignment::from, "The sender.")
      .def_ro("to", &RailAssignment::to, "The receiver.")
      .def_ro("rail", &RailAssignment::rail, "The rail, from 0.")
      .def_ro("first_byte", &RailAssignment::first_byte, "Where the piece begins in its message.")
      .def_ro("bytes", &RailAssignment::bytes, "Bytes of the piece.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const RailAssignment& one) {
        return nb::str("<RailAssignment: {} to {}, bytes {} to {} on rail {}>")
            .format(one.from, one.to, one.first_byte, one.first_byte + one.bytes, one.rail);
      });
  nb::class_<RailPlan>(module, "RailPlan", "The rails of the messages that a host sends at the same time.")
      .def_prop_ro("assignments", tuple_of(&RailPlan::assignments),
                   "One entry per message in their order, or one per piece of a message that is cut.")
      .def_prop_ro("loads", tuple_of(&RailPlan::loads), "Bytes on each rail.")
      .def_ro("busiest", &RailPlan::busiest, "Seconds until the last rail has finished.")
      .def_ro("lower_bound", &RailPlan::lower_bound, "No assignment of the same kind finishes earlier.")
      .def_ro("optimal", &RailPlan::optimal, "Whether `busiest` is proved to be the least possible.");
  module.def("assign_rails", &assign, "messages"_a, "speeds"_a, "rule"_a = "optimum", "cut"_a = false,
             "min_piece"_a = 1, nb::call_guard<nb::gil_scoped_release>(),
             "Assign the messages (from, to, bytes) of one host to its rails.");
  module.def("assign_schedule_rails", &assign_schedule, "schedule"_a, "hosts"_a, "speeds"_a, "rule"_a = "optimum",
             "cut"_a = false, "min_piece"_a = 1, nb::call_guard<nb::gil_scoped_release>(),
             "Assign the messages of a schedule that leave their host to rails, round by round.");
}
