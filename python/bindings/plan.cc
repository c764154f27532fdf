#include "onehop/plan.h"

#include <nanobind/stl/tuple.h>

#include <utility>

#include "onehop/tuning.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"
#include "src/base/text.h"

using onehop::Plan;
using onehop::PlanCounters;
using onehop::base::counted;

namespace {

// Returns for each array whether the schedule reads it, writes it, and combines or encodes its numbers on a rank. Array
// numbers out of range are ignored here; the plan reports them.
std::vector<std::tuple<bool, bool, bool>> array_use(const onehop::Schedule& schedule, int rank) {
  std::vector<std::tuple<bool, bool, bool>> use(schedule.arrays.size());
  for (const auto& round : schedule.rounds) {
    for (const auto& transfer : round.transfers) {
      const bool computes = transfer.combine != onehop::Combine::replace || transfer.codec != onehop::Codec::raw;
      for (const onehop::Place* const place : {&transfer.from, &transfer.to}) {
        if (place->rank != rank || place->array < 0 || !std::cmp_less(place->array, use.size())) continue;
        auto& [read, written, numbers] = use[static_cast<std::size_t>(place->array)];
        (place == &transfer.from ? read : written) = true;
        numbers = numbers || computes;
      }
    }
  }
  return use;
}

nb::list channels_of(const Plan& plan) {
  nb::list found;
  for (const onehop::PlanChannel& channel : plan.channels()) {
    nb::dict entry;
    entry["direction"] = channel.sends ? "send" : "receive";
    entry["peer"] = channel.peer;
    entry["bytes"] = channel.bytes;
    entry["slots"] = channel.slots;
    entry["slot_bytes"] = channel.slot_bytes;
    entry["chunk_bytes"] = channel.chunk_bytes;
    if (channel.sends) {
      entry["stores"] = std::string(onehop::to_string(channel.stores));
      entry["adaptive"] = channel.adaptive;
      entry["direct_puts"] = channel.direct_puts;
      entry["direct_stores"] = std::string(onehop::to_string(channel.direct_stores));
      entry["rails"] = channel.rails;
      entry["rails_assigned"] = channel.rails_assigned;
    }
    found.append(entry);
  }
  return found;
}

}  // namespace

void bind_plan(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  using onehop::PlanOptions;
  nb::class_<PlanOptions>(module, "PlanOptions", "How the messages of a plan travel; see `onehop.Plan`.")
      .def(nb::init<>())
      .def_rw("slots", &PlanOptions::slots, "Slots per channel; 0: two.")
      .def_rw("slot_bytes", &PlanOptions::slot_bytes, "Largest size of a slot; 0: onehop chooses.")
      .def_rw("chunk_bytes", &PlanOptions::chunk_bytes, "Bytes between two flags; 0: onehop chooses.")
      .def_rw("direct_puts", &PlanOptions::direct_puts, "Whether senders write straight into shared arrays.")
      .def_rw("rails", &PlanOptions::rails, nb::arg().none(), "The network interface of each message.")
      .def_rw("verify", &PlanOptions::verify, "Whether to refuse every schedule that `verify` refuses.");
  nb::class_<PlanCounters>(module, "PlanCounters", "The messages and bytes that a plan has moved on this rank.")
      .def_ro("runs", &PlanCounters::runs, "Number of finished runs.")
      .def_ro("messages_sent", &PlanCounters::messages_sent, "Messages to other ranks.")
      .def_ro("messages_received", &PlanCounters::messages_received, "Messages from other ranks.")
      .def_ro("bytes_sent", &PlanCounters::bytes_sent, "Bytes sent to other ranks.")
      .def_ro("bytes_received", &PlanCounters::bytes_received, "Bytes received from other ranks.")
      .def_ro("bytes_local", &PlanCounters::bytes_local, "Bytes copied inside the rank.")
      .def("__repr__", [](const PlanCounters& c) {
        return nb::str("<PlanCounters: {}, {} and {} sent, {} and {} received, {} local>")
            .format(counted(c.runs, "run"), counted(c.messages_sent, "message"), counted(c.bytes_sent, "byte"),
                    counted(c.messages_received, "message"), counted(c.bytes_received, "byte"),
                    counted(c.bytes_local, "byte"));
      });
  nb::class_<Plan>(module, "Plan",
                   "A schedule bound to a group and to memory. The constructor is collective; see `onehop.Plan`.\n\n"
                   "Parameters\n----------\n"
                   "group : Group\n    Ranks of the schedule.\n"
                   "schedule : Schedule\n    Schedule to execute.\n"
                   "arrays : list of Memory\n    Memory of each array of the schedule on this rank.\n"
                   "transport : str\n    auto, shared_memory, mpi or mock.\n"
                   "options : PlanOptions\n    How messages travel.")
      .def(
          "__init__",
          [](Plan* self, const onehop::Group& group, const onehop::Schedule& schedule,
             const std::vector<const Memory*>& arrays, const std::string& transport, onehop::PlanOptions options) {
            std::vector<std::span<std::byte>> spans;
            for (const Memory* memory : arrays) spans.push_back(memory->bytes());
            options.transport = transport_for(group, transport);
            const nb::gil_scoped_release released;
            new (self) Plan(group, schedule, spans, options);
          },
          "group"_a, "schedule"_a, "arrays"_a, "transport"_a, "options"_a, nb::keep_alive<1, 4>())
      .def("start", &Plan::start, release(), "Start a run without waiting.")
      .def("finish", &Plan::finish, release(), "Complete the run. The GIL is released meanwhile; Ctrl-C ends the wait.")
      .def("run", &Plan::run, release(), "Call `start` and `finish`.")
      .def(
          "__enter__",
          [](nb::handle_t<Plan> self) {
            auto& plan = nb::cast<Plan&>(self);
            {
              const nb::gil_scoped_release released;
              plan.start();
            }
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Plan"), "Call `start`.")
      .def(
          "__exit__",
          [](Plan& plan, nb::handle type, nb::handle, nb::handle) {
            if (!type.is_none()) return;
            const nb::gil_scoped_release released;
            plan.finish();
          },
          nb::sig("def __exit__(self, type: object, error: object, trace: object) -> None"), "type"_a.none(),
          "error"_a.none(), "trace"_a.none(), "Call `finish`, unless the block has raised an exception.")
      .def("test", &Plan::test, release(),
           "Move what can be moved without waiting. Returns whether `finish` would return at once.")
      .def_prop_ro(
          "counters", [](const Plan& p) { return p.counters(); }, "Messages and bytes moved so far.")
      .def_prop_ro("staging_bytes", &Plan::staging_bytes, "Bytes of staging for incoming messages on this rank.")
      .def("_channels", &channels_of, "This rank's ends of channels, as dictionaries for `explain`.");
  module.def(
      "array_use", &array_use, "schedule"_a, "rank"_a,
      "Return for each array whether a schedule reads it on a rank, writes it, and combines or encodes its numbers.");
}
