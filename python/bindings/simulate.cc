#include "onehop/machine/simulate.h"

#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "collectives/policy.h"
#include "onehop/error.h"
#include "onehop/machine/goal.h"
#include "python/bindings/bindings.h"
#include "src/base/text.h"

using onehop::GoalOptions;
using onehop::LinkLoad;
using onehop::Machine;
using onehop::Message;
using onehop::SimulatedRound;
using onehop::SimulateOptions;
using onehop::Simulation;
using onehop::Traffic;
using onehop::TrafficRound;

namespace {

// Calls a Python function, and lets signals such as Ctrl-C interrupt the simulation.
std::function<bool(double)> guarded(const nb::object& progress) {
  return [&progress](double fraction) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(fraction);
    return true;
  };
}

void check_round(const Traffic& traffic, std::size_t round) {
  if (round < traffic.rounds.size()) return;
  throw onehop::BadInput("expected a round below " + std::to_string(traffic.rounds.size()) + ", found " +
                         std::to_string(round));
}

void bind_traffic(nb::module_& module) {
  nb::class_<Traffic>(module, "Traffic", "The messages of a schedule, without their contents.")
      .def_ro("name", &Traffic::name, "Name of the schedule or pattern.")
      .def_ro("ranks", &Traffic::ranks, "Number of ranks.")
      .def_ro("rank_bytes", &Traffic::rank_bytes,
              "Bytes of the arrays of the rank that has the most; 0 if they are not known.")
      .def_prop_ro(
          "rounds", [](const Traffic& t) { return t.rounds.size(); }, "Number of rounds.")
      .def(
          "messages",
          [](const Traffic& t, std::size_t round) {
            const Traffic listed = t.listed();
            check_round(listed, round);
            nb::list list;
            for (const Message& m : listed.rounds[round].messages) list.append(nb::make_tuple(m.from, m.to, m.bytes));
            return nb::tuple(list);
          },
          nb::sig("def messages(self, round: int) -> tuple[tuple[int, int, int], ...]"), "round"_a,
          "Return sender, receiver and bytes of every message of a round.")
      .def(
          "pieces",
          [](const Traffic& t, std::size_t round) {
            const Traffic listed = t.listed();
            check_round(listed, round);
            nb::list list;
            for (const Message& m : listed.rounds[round].messages) {
              list.append(nb::make_tuple(m.pieces_sent, m.pieces_received));
            }
            return nb::tuple(list);
          },
          nb::sig("def pieces(self, round: int) -> tuple[tuple[int, int], ...]"), "round"_a,
          "Return the contiguous pieces that the sender gathers and the receiver scatters, for every message of a "
          "round; 0: one piece.")
      .def(
          "on_rails",
          [](const Traffic& t, std::size_t round, const std::vector<int>& rails) {
            Traffic result = t.listed();
            check_round(result, round);
            auto& messages = result.rounds[round].messages;
            if (rails.size() != messages.size()) {
              throw onehop::BadInput("rails: expected one for each of " +
                                     onehop::base::counted(messages.size(), "message") + ", found " +
                                     std::to_string(rails.size()));
            }
            for (std::size_t i = 0; i < rails.size(); ++i) messages[i].rail = rails[i];
            return result;
          },
          "round"_a, "rails"_a,
          "Return the traffic with the messages of a round, in the order of `messages`, on these interfaces.")
      .def(
          "on_rails",
          [](const Traffic& t, const std::vector<std::vector<onehop::RailAssignment>>& assignments,
             const std::vector<int>& hosts) { return onehop::on_rails(t, assignments, hosts); },
          "assignments"_a, "hosts"_a = std::vector<int>{},
          "Return the traffic with messages or their pieces on rails: one list of RailAssignment for each round of the "
          "traffic, or of the schedule that it was made from. Messages without an assignment stay as they are; with "
          "`hosts`, the host of every rank, only messages inside a host may be without one.")
      .def("listed", &Traffic::listed, "Return the same traffic with every message listed.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Traffic& t) {
        return nb::str("<Traffic {!r}: {} ranks, {} rounds>").format(t.name, t.ranks, t.rounds.size());
      });
  module.def(
      "message_traffic",
      [](int ranks, const std::vector<std::vector<std::tuple<int, int, std::int64_t>>>& rounds) {
        if (ranks < 1) throw onehop::BadInput("expected at least 1 rank, found " + std::to_string(ranks));
        Traffic traffic{"messages", ranks, {}, 0};
        for (const auto& messages : rounds) {
          TrafficRound round;
          for (const auto& [from, to, bytes] : messages) {
            if (std::min(from, to) < 0 || std::max(from, to) >= ranks) {
              throw onehop::BadInput("round " + std::to_string(traffic.rounds.size()) + ": expected ranks from 0 to " +
                                     std::to_string(ranks - 1) + ", found a message of " + std::to_string(from) +
                                     " to " + std::to_string(to));
            }
            round.messages.push_back({from, to, bytes});
          }
          traffic.rounds.push_back(std::move(round));
        }
        return traffic;
      },
      "ranks"_a, "rounds"_a, "Make traffic from lists of (sender, receiver, bytes), one per round.");
  module.def(
      "assign_traffic_rails",
      [](const Traffic& traffic, const std::vector<int>& hosts, std::vector<double> speeds, const std::string& rule,
         bool cut, std::int64_t min_piece) {
        return onehop::assign_rails(traffic, hosts,
                                    {std::move(speeds), onehop::rail_rule_from_string(rule), cut, min_piece});
      },
      "traffic"_a, "hosts"_a, "speeds"_a, "rule"_a = "optimum", "cut"_a = false, "min_piece"_a = 1,
      nb::call_guard<nb::gil_scoped_release>(),
      "Assign the messages of traffic that leave their host to rails, round by round.");
  module.def("traffic_of", &onehop::traffic_of, "schedule"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Return the messages of a schedule.");
  module.def(
      "allreduce_traffic",
      [](int ranks, std::int64_t elements, const std::string& type, const std::string& algorithm) {
        return onehop::allreduce_traffic({ranks, elements, onehop::element_type_from_string(type), onehop::Combine::add,
                                          onehop::reduce_algorithm_from_string(algorithm)});
      },
      "ranks"_a, "elements"_a, "type"_a, "algorithm"_a,
      "Return the messages of an all-reduce without building its schedule.");
  module.def(
      "by_host_traffic",
      [](const std::vector<int>& hosts, std::int64_t elements, const std::string& type) {
        return onehop::by_host_traffic(
            {static_cast<int>(hosts.size()), elements, onehop::element_type_from_string(type), onehop::Combine::add,
             onehop::ReduceAlgorithm::by_host},
            hosts, onehop::collectives::detail::by_host_piece_bytes);
      },
      "hosts"_a, "elements"_a, "type"_a,
      "Return the messages of an all-reduce by host, from the host of every rank, piece by piece.");
  module.def(
      "predicted_algorithm",
      [](const std::vector<int>& hosts, std::int64_t elements, const std::string& type) {
        const std::int64_t bytes = elements * bytes_of(onehop::element_type_from_string(type));
        return to_string(onehop::collectives::detail::predicted_algorithm(hosts, bytes));
      },
      "hosts"_a, "elements"_a, "type"_a,
      "Return the algorithm that an all-reduce of such an array takes, from the host of every rank.");
  module.def(
      "broadcast_traffic",
      [](const std::vector<int>& hosts, std::int64_t bytes) {
        const auto predicted = onehop::collectives::detail::predicted_broadcast(hosts, bytes);
        return onehop::broadcast_traffic(hosts, bytes, predicted.chunks, predicted.in_chain);
      },
      "hosts"_a, "bytes"_a,
      "Return the messages of a broadcast of so many bytes from rank 0, from the host of every rank.");
  module.def(
      "permutation_traffic",
      [](int bits, int local_bits, std::vector<int> permutation, std::int64_t element_bytes, const std::string& codec,
         const std::string& type, bool shared) {
        const onehop::PermuteBitsSpec spec{bits,
                                           local_bits,
                                           std::move(permutation),
                                           element_bytes,
                                           onehop::codec_from_string(codec),
                                           onehop::element_type_from_string(type)};
        return shared ? onehop::shared_permutation_traffic(spec) : onehop::permutation_traffic(spec);
      },
      "bits"_a, "local_bits"_a, "permutation"_a, "element_bytes"_a, "codec"_a, "type"_a, "shared"_a = false,
      "Return the messages of a permutation of index bits without building its schedule.");
}

void bind_result(nb::module_& module) {
  nb::class_<LinkLoad>(module, "LinkLoad", "The load of one link of a machine.")
      .def_ro("name", &LinkLoad::name, "Name of the link.")
      .def_ro("level", &LinkLoad::level, "Level of the machine.")
      .def_ro("bytes", &LinkLoad::bytes, "Bytes that cross it.")
      .def_ro("bandwidth", &LinkLoad::bandwidth, "Bytes per second.")
      .def_ro("alike", &LinkLoad::alike, "Number of links with this load.")
      .def_prop_ro("seconds", &LinkLoad::seconds, "The shortest time that the load takes.");
  nb::class_<SimulatedRound>(module, "SimulatedRound", "One round of a simulation.")
      .def_ro("seconds", &SimulatedRound::seconds,
              "Seconds from the end of the round before to the end of this one, each on the slowest rank.")
      .def_ro("messages", &SimulatedRound::messages, "Number of messages.")
      .def_ro("bytes", &SimulatedRound::bytes, "Bytes of the messages.")
      .def_prop_ro("schedule_rounds", tuple_of(&SimulatedRound::schedule_rounds),
                   "Rounds of the schedule that it stands for.");
  nb::class_<Simulation>(module, "Simulation",
                         "The time that a schedule takes on a machine, and the load of its links.")
      .def_ro("schedule", &Simulation::schedule, "Name of the schedule.")
      .def_ro("machine", &Simulation::machine, "Name of the machine.")
      .def_ro("ranks", &Simulation::ranks, "Number of ranks.")
      .def_ro("seconds", &Simulation::seconds, "Predicted seconds.")
      .def_prop_ro("rounds", tuple_of(&Simulation::rounds), "The rounds.")
      .def_prop_ro("links", tuple_of(&Simulation::links), "Loads of the links, busiest first.")
      .def_prop_ro(
          "busiest_link", [](const Simulation& s) { return s.links.empty() ? nb::none() : nb::cast(s.links.front()); },
          nb::sig("def busiest_link(self) -> LinkLoad | None"), "The link that is busy for longest.")
      .def_prop_ro(
          "bytes_by_level",
          [](const Simulation& s) {
            std::map<std::string, double> bytes;
            for (const auto& one : s.bytes_by_level) bytes[one.level] = one.bytes;
            return bytes;
          },
          "Bytes of messages between members of each level.")
      .def_prop_ro("timeline_ranks", tuple_of(&Simulation::timeline_ranks), "The rank that each time line shows.")
      .def(
          "timeline",
          [](const Simulation& s, std::size_t index) {
            if (index >= s.timelines.size()) throw nb::index_error();
            nb::list list;
            for (const auto& one : s.timelines[index]) {
              list.append(nb::make_tuple(one.begin, one.posted, one.computed, one.end));
            }
            return nb::tuple(list);
          },
          nb::sig("def timeline(self, index: int) -> tuple[tuple[float, float, float, float], ...]"), "index"_a,
          "Return when a rank begins each round, has started its messages, has computed, and ends the round.")
      .def_ro("seconds_to_simulate", &Simulation::seconds_to_simulate, "Seconds that the simulation took.")
      .def_ro("by_symmetry", &Simulation::by_symmetry, "Whether one rank stands for many.")
      .def("to_json", &Simulation::to_json, "indent"_a = -1, "max_links"_a = 100, "max_timelines"_a = 64,
           "Return the result as JSON text.")
      .def("__repr__", [](const Simulation& s) {
        return nb::str("<Simulation of {!r} on {!r}: {} ranks, {:.6g} s>")
            .format(s.schedule, s.machine, s.ranks, s.seconds);
      });
}

GoalOptions goal_options(std::vector<std::int64_t> compute_ns, double copy_ns_per_byte) {
  return {std::move(compute_ns), copy_ns_per_byte};
}

}  // namespace

void bind_simulate(nb::module_& module) {
  bind_traffic(module);
  nb::class_<SimulateOptions>(module, "SimulateOptions", "How traffic is simulated; see `onehop.machine.simulate`.")
      .def(nb::init<>())
      .def_rw("places", &SimulateOptions::places, "Place of every rank; empty: those of a job.")
      .def_rw("compute", &SimulateOptions::compute, "Seconds that every rank computes in each round.")
      .def_rw("chunk_bytes", &SimulateOptions::chunk_bytes, "Size of the chunks of messages; 0: no packing.")
      .def_rw("slot_bytes", &SimulateOptions::slot_bytes, "Size of a slot; 0: no limit.")
      .def_rw("slots", &SimulateOptions::slots, "Number of slots of a channel.")
      .def_rw("contention", &SimulateOptions::contention, "Whether messages share links.")
      .def_rw("accuracy", &SimulateOptions::accuracy, "Relative time between two computations of the rates.");
  bind_result(module);
  module.def(
      "simulate_traffic",
      [](const Traffic& traffic, const Machine& machine, SimulateOptions options, const nb::object& progress) {
        options.progress = guarded(progress);
        const nb::gil_scoped_release release;
        return onehop::simulate(traffic, machine, options);
      },
      nb::sig("def simulate_traffic(traffic: Traffic, machine: Machine, options: SimulateOptions, "
              "progress: Callable[[float], object] | None) -> Simulation"),
      "traffic"_a, "machine"_a, "options"_a, "progress"_a.none(),
      "Compute how long the traffic takes on a machine. `onehop.machine.simulate` explains it.");
  module.def(
      "to_goal",
      [](const Traffic& traffic, std::vector<std::int64_t> compute_ns, double copy_ns_per_byte) {
        return onehop::to_goal(traffic, goal_options(std::move(compute_ns), copy_ns_per_byte));
      },
      "traffic"_a, "compute_ns"_a = std::vector<std::int64_t>{}, "copy_ns_per_byte"_a = 0.0,
      "Return the traffic as GOAL, the text format of LogGOPSim and ATLAHS.");
  module.def(
      "loggops",
      [](const Traffic& traffic, std::int64_t latency, std::int64_t overhead, std::int64_t gap,
         std::int64_t gap_per_byte, std::int64_t overhead_per_byte, std::vector<std::int64_t> compute_ns,
         double copy_ns_per_byte) {
        return onehop::loggops(traffic, {latency, overhead, gap, gap_per_byte, overhead_per_byte},
                               goal_options(std::move(compute_ns), copy_ns_per_byte));
      },
      "traffic"_a, "latency"_a = 2500, "overhead"_a = 1500, "gap"_a = 1000, "gap_per_byte"_a = 6,
      "overhead_per_byte"_a = 0, "compute_ns"_a = std::vector<std::int64_t>{}, "copy_ns_per_byte"_a = 0.0,
      "Return the nanosecond at which each rank ends in the model LogGOPS, without links that messages share.");
}
