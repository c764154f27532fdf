#include "onehop/count.h"

#include <nanobind/operators.h>

#include "python/bindings/bindings.h"
#include "src/base/text.h"

using onehop::Count;
using onehop::PairCount;
using onehop::RankCount;
using onehop::base::counted;

void bind_count(nb::module_& module) {
  nb::class_<PairCount>(module, "PairCount", "The messages and bytes that one rank sends to another.")
      .def_ro("from_", &PairCount::from, "The sender.")
      .def_ro("to", &PairCount::to, "The receiver.")
      .def_ro("messages", &PairCount::messages,
              "Number of messages. All data for one rank in one round is one message.")
      .def_ro("bytes", &PairCount::bytes, "Bytes on the wire.")
      .def_ro("pieces", &PairCount::pieces, "Contiguous pieces that the sender gathers in all messages.")
      .def_ro("pieces_received", &PairCount::pieces_received, "Contiguous pieces that the receiver scatters.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"));
  nb::class_<RankCount>(module, "RankCount", "The messages and bytes that one rank sends and receives.")
      .def_ro("messages_sent", &RankCount::messages_sent, "Messages to other ranks.")
      .def_ro("messages_received", &RankCount::messages_received, "Messages from other ranks.")
      .def_ro("bytes_sent", &RankCount::bytes_sent, "Bytes to other ranks.")
      .def_ro("bytes_received", &RankCount::bytes_received, "Bytes from other ranks.")
      .def_ro("bytes_local", &RankCount::bytes_local, "Bytes copied inside the rank.")
      .def_ro("pieces_sent", &RankCount::pieces_sent, "Contiguous pieces that the rank gathers.")
      .def_ro("pieces_received", &RankCount::pieces_received, "Contiguous pieces that the rank scatters.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"));
  nb::class_<Count>(module, "Count", "The messages and bytes of a schedule.")
      .def_ro("rounds", &Count::rounds, "Rounds that move data.")
      .def_ro("messages", &Count::messages, "Messages between ranks.")
      .def_ro("bytes", &Count::bytes, "Bytes between ranks.")
      .def_ro("bytes_local", &Count::bytes_local, "Bytes copied inside ranks; not part of `bytes`.")
      .def_prop_ro("ranks", tuple_of(&Count::ranks), "Counts of each rank.")
      .def_prop_ro("pairs", tuple_of(&Count::pairs), "Counts of each pair of ranks that exchange data, sorted.")
      .def("to_json", &Count::to_json, "indent"_a = -1,
           "Return the counts as JSON text. `indent` below 0 writes one line.")
      .def("__repr__", [](const Count& c) {
        return nb::str("<Count: {}, {}, {}, {} local>")
            .format(counted(c.rounds, "round"), counted(c.messages, "message"), counted(c.bytes, "byte"),
                    counted(c.bytes_local, "byte"));
      });
  module.def("count", &onehop::count, "schedule"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Count the messages and bytes of a schedule without running it.");
}
