#include "onehop/plan.h"

#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

using onehop::Plan;
using onehop::PlanCounters;

namespace {

// Which arrays the schedule reads and writes on a rank. An array that the schedule does not have is the plan's error.
std::vector<std::pair<bool, bool>> array_use(const onehop::Schedule& schedule, int rank) {
  std::vector<std::pair<bool, bool>> use(schedule.arrays.size());
  const auto uses = [&](const onehop::Place& place) {
    return place.rank == rank && place.array >= 0 && static_cast<std::size_t>(place.array) < use.size();
  };
  for (const auto& round : schedule.rounds) {
    for (const auto& transfer : round.transfers) {
      if (uses(transfer.from)) use[static_cast<std::size_t>(transfer.from.array)].first = true;
      if (uses(transfer.to)) use[static_cast<std::size_t>(transfer.to.array)].second = true;
    }
  }
  return use;
}

}  // namespace

void bind_plan(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<PlanCounters>(module, "PlanCounters", "What a plan has moved since it was made.")
      .def_ro("runs", &PlanCounters::runs, "Finished runs.")
      .def_ro("messages_sent", &PlanCounters::messages_sent)
      .def_ro("messages_received", &PlanCounters::messages_received)
      .def_ro("bytes_sent", &PlanCounters::bytes_sent)
      .def_ro("bytes_received", &PlanCounters::bytes_received)
      .def_ro("bytes_local", &PlanCounters::bytes_local, "Bytes copied inside the rank.")
      .def("__repr__", [](const PlanCounters& c) {
        return nb::str("<PlanCounters: {} runs, {} messages and {} bytes sent, {} and {} received, {} bytes local>")
            .format(c.runs, c.messages_sent, c.bytes_sent, c.messages_received, c.bytes_received, c.bytes_local);
      });
  nb::class_<Plan>(module, "Plan", "A schedule bound to a group and to memory.")
      .def(
          "__init__",
          [](Plan* self, const onehop::Group& group, const onehop::Schedule& schedule,
             const std::vector<const Memory*>& arrays, const std::string& transport, int slots, std::int64_t slot_bytes,
             std::int64_t chunk_bytes) {
            std::vector<std::span<std::byte>> spans;
            for (const Memory* memory : arrays) spans.push_back(memory->bytes());
            const onehop::PlanOptions options{transport_for(group, transport), slots, slot_bytes, chunk_bytes};
            const nb::gil_scoped_release released;
            new (self) Plan(group, schedule, spans, options);
          },
          "group"_a, "schedule"_a, "arrays"_a, "transport"_a, "slots"_a, "slot_bytes"_a, "chunk_bytes"_a,
          nb::keep_alive<1, 4>())
      .def("start", &Plan::start, release(), "Begins a run and never waits.")
      .def("finish", &Plan::finish, release(), "Completes the run. Waits with the GIL released; Ctrl-C ends the wait.")
      .def("run", &Plan::run, release(), "start() and finish().")
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
          nb::sig("def __enter__(self) -> Plan"), "start()")
      .def(
          "__exit__",
          [](Plan& plan, nb::handle type, nb::handle, nb::handle) {
            if (!type.is_none()) return;
            const nb::gil_scoped_release released;
            plan.finish();
          },
          nb::sig("def __exit__(self, type: object, error: object, trace: object) -> None"), "type"_a.none(),
          "error"_a.none(), "trace"_a.none(), "finish(), unless the block raised.")
      .def("test", &Plan::test, release(),
           "Moves on what can be moved without waiting; True if finish() would return at once.")
      .def_prop_ro(
          "counters", [](const Plan& p) { return p.counters(); }, "What it has moved since it was made.")
      .def_prop_ro("staging_bytes", &Plan::staging_bytes, "Bytes of staging for incoming messages on this rank.");
  module.def("array_use", &array_use, "schedule"_a, "rank"_a,
             "For every array: whether the rank reads it, and writes it.");
}
