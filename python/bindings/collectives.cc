#include "onehop/collectives/collectives.h"

#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

using onehop::collectives::Collective;
using onehop::collectives::Collectives;
using onehop::collectives::CollectivesCounters;
using onehop::collectives::CollectivesOptions;
using onehop::collectives::Content;
using onehop::collectives::Part;
using onehop::collectives::Reduction;

namespace {

Reduction reduction(std::int64_t elements, const std::string& type, const std::string& op, const std::string& codec,
                    const std::string& algorithm, std::int64_t chunk_bytes, std::vector<std::int64_t> shape) {
  return {elements,
          onehop::element_type_from_string(type),
          onehop::collectives::reduce_op_from_string(op),
          onehop::codec_from_string(codec),
          onehop::reduce_algorithm_from_string(algorithm),
          chunk_bytes,
          std::move(shape)};
}

Content content(const std::string& type, std::vector<std::int64_t> shape) {
  return {onehop::element_type_from_string(type), std::move(shape)};
}

// Each part is (source, result, elements), the first two as addresses.
std::vector<Part> parts_at(const std::vector<std::tuple<std::uintptr_t, std::uintptr_t, std::int64_t>>& addresses) {
  std::vector<Part> parts;
  for (const auto& [source, result, elements] : addresses) {
    parts.push_back({reinterpret_cast<const std::byte*>(source), reinterpret_cast<std::byte*>(result), elements});
  }
  return parts;
}

onehop::Schedule allreduce_schedule(int ranks, std::int64_t elements, const std::string& type,
                                    const std::string& combine, const std::string& algorithm,
                                    std::optional<int> only_rank) {
  return onehop::allreduce({ranks, elements, onehop::element_type_from_string(type),
                            onehop::combine_from_string(combine), onehop::reduce_algorithm_from_string(algorithm)},
                           only_rank);
}

}  // namespace

void bind_collectives(nb::module_& module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  module.def(
      "allreduce_schedule", &allreduce_schedule, "ranks"_a, "elements"_a, "type"_a = "float32", "combine"_a = "add",
      "algorithm"_a = "two_shot", "only_rank"_a = nb::none(), release(),
      "Make the schedule of an all-reduce: array 0 of all ranks, combined in the order of ranks, goes to array 1 of "
      "every rank. `combine` is add, min, max or prod; `algorithm` is one_shot or two_shot.");
  nb::class_<Collective>(module, "Collective",
                         "A prepared collective operation, which can run any number of times. Only one operation of "
                         "the same `Collectives` "
                         "runs at a time, and every rank runs them in the same order.")
      .def(
          "start",
          [](Collective& self, const Memory& source, const Memory& result) {
            const nb::gil_scoped_release released;
            self.start(source.bytes(), result.bytes());
          },
          "source"_a, "result"_a,
          "Start the operation without waiting. Until `finish` returns, do not write `source` and do not access "
          "`result`.",
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("finish", &Collective::finish, release(), "Complete the operation.")
      .def(
          "run",
          [](Collective& self, const Memory& source, const Memory& result) {
            const nb::gil_scoped_release released;
            self.run(source.bytes(), result.bytes());
          },
          "source"_a, "result"_a, "start() and finish().")
      .def(
          "run_parts",
          [](Collective& self, const std::vector<std::tuple<std::uintptr_t, std::uintptr_t, std::int64_t>>& addresses) {
            const std::vector<Part> parts = parts_at(addresses);
            const nb::gil_scoped_release released;
            self.start(parts);
            self.finish();
          },
          "parts"_a,
          "Run an all-reduce on several arrays: (address of the source, address of the result, elements) of each.")
      .def(
          "run_at",
          [](Collective& self, std::uintptr_t source, std::size_t source_bytes, std::uintptr_t result,
             std::size_t result_bytes) {
            const nb::gil_scoped_release released;
            self.run({reinterpret_cast<const std::byte*>(source), source_bytes},
                     {reinterpret_cast<std::byte*>(result), result_bytes});
          },
          "source"_a, "source_bytes"_a, "result"_a, "result_bytes"_a,
          "Run the operation on arrays at these addresses, of these lengths in bytes. Raises BadInput for lengths "
          "other "
          "than those of the operation.")
      .def_prop_ro("source_bytes", &Collective::source_bytes, "Length of the source in bytes.")
      .def_prop_ro("result_bytes", &Collective::result_bytes, "Length of the result in bytes.")
      .def_prop_ro("chunk_bytes", &Collective::chunk_bytes, "Size of the chunks in which the data travels, in bytes.")
      .def_prop_ro(
          "algorithm", [](const Collective& c) { return std::string(onehop::to_string(c.algorithm())); },
          "Algorithm of a reduction: one_shot, two_shot or by_host.");
  nb::class_<Collectives>(
      module, "Collectives",
      "Channels between all ranks of a group, and the operations on them. The constructor is "
      "collective.\n\n"
      "Parameters\n----------\n"
      "group : Group\n    Ranks that take part.\n"
      "transport : str\n    auto, shared_memory or mpi.\n"
      "slots, slot_bytes : int\n    Number and size of the slots per channel; 0 lets onehop choose.")
      .def(
          "__init__",
          [](Collectives* self, const onehop::Group& group, const std::string& transport, int slots,
             std::int64_t slot_bytes) {
            const CollectivesOptions options{onehop::transport_from_string(transport), slots, slot_bytes};
            const nb::gil_scoped_release released;
            new (self) Collectives(group, options);
          },
          "group"_a, "transport"_a = "auto", "slots"_a = 0, "slot_bytes"_a = 0)
      .def(
          "allreduce",
          [](const Collectives& self, std::int64_t elements, const std::string& type, const std::string& op,
             const std::string& codec, const std::string& algorithm, std::int64_t chunk_bytes,
             std::vector<std::int64_t> shape) {
            return self.allreduce(reduction(elements, type, op, codec, algorithm, chunk_bytes, std::move(shape)));
          },
          "elements"_a, "type"_a, "op"_a = "sum", "codec"_a = "raw", "algorithm"_a = "auto", "chunk_bytes"_a = 0,
          "shape"_a = std::vector<std::int64_t>{},
          "Prepare an all-reduce. Not collective.\n\n"
          "Parameters\n----------\n"
          "elements : int\n    Number of elements of the array.\n"
          "type : str\n    Type of an element, such as \"float32\".\n"
          "op : str\n    Operator, such as \"sum\".\n"
          "codec : str\n    Codec on the wire; \"raw\" is exact.\n"
          "algorithm : str\n    auto, one_shot, two_shot or by_host.\n"
          "chunk_bytes : int\n    Size of the chunks in which the data travels; 0 lets onehop choose.\n"
          "shape : sequence of int\n    Extents of the array, or of several arrays with -1 between them. Ranks with "
          "different shapes raise Mismatch. Empty: one dimension.")
      .def(
          "reduce_scatter",
          [](const Collectives& self, std::int64_t elements, const std::string& type, const std::string& op,
             const std::string& codec, std::int64_t chunk_bytes, std::vector<std::int64_t> shape,
             const std::string& algorithm) {
            return self.reduce_scatter(reduction(elements, type, op, codec, algorithm, chunk_bytes, std::move(shape)));
          },
          "elements"_a, "type"_a, "op"_a = "sum", "codec"_a = "raw", "chunk_bytes"_a = 0,
          "shape"_a = std::vector<std::int64_t>{}, "algorithm"_a = "auto",
          "Prepare a reduce-scatter: the source has a block of `elements` elements per rank, the result is the reduced "
          "block of this rank. Other arguments as for `allreduce`.")
      .def(
          "allgather",
          [](const Collectives& self, const std::vector<std::int64_t>& bytes, const std::string& type,
             std::vector<std::int64_t> shape) { return self.allgather(bytes, content(type, std::move(shape))); },
          "bytes"_a, "type"_a = "bytes", "shape"_a = std::vector<std::int64_t>{},
          "Prepare an all-gather of blocks of bytes[r] bytes on rank r. Ranks with different types or shapes raise "
          "Mismatch.")
      .def(
          "broadcast",
          [](const Collectives& self, std::int64_t bytes, int root, const std::string& type,
             std::vector<std::int64_t> shape) { return self.broadcast(bytes, root, content(type, std::move(shape))); },
          "bytes"_a, "root"_a = 0, "type"_a = "bytes", "shape"_a = std::vector<std::int64_t>{},
          "Prepare a broadcast of `bytes` bytes from rank `root`.")
      .def(
          "all_to_all",
          [](const Collectives& self, const std::vector<std::int64_t>& bytes_to,
             const std::vector<std::int64_t>& bytes_from, const std::string& type, std::vector<std::int64_t> shape) {
            return self.all_to_all(bytes_to, bytes_from, content(type, std::move(shape)));
          },
          "bytes_to"_a, "bytes_from"_a, "type"_a = "bytes", "shape"_a = std::vector<std::int64_t>{},
          "Prepare an exchange in which rank r gets block r of the source, of bytes_to[r] bytes, and block r of the "
          "result, "
          "of bytes_from[r] bytes, comes from rank r.")
      .def("barrier", &Collectives::barrier, release(), "Wait until all ranks have called it.")
      .def_prop_ro(
          "counters",
          [](const Collectives& self) {
            const CollectivesCounters c = self.counters();
            return nb::make_tuple(c.operations, c.bytes_sent, c.bytes_received);
          },
          "Number of operations, bytes sent and bytes received so far.")
      .def_prop_ro("staging_bytes", &Collectives::staging_bytes,
                   "Bytes of shared memory that currently back the channels to this rank.")
      .def(
          "compress_above",
          [](const Collectives& self, const std::string& codec) {
            return self.table().pays_from(onehop::codec_from_string(codec));
          },
          "codec"_a,
          "Return the length in bytes from which an all-reduce of float32 is faster with this codec than raw, or "
          "None.");
  module.def(
      "compress_above",
      [](const std::string& codec, bool in_memory, int ranks) {
        using onehop::collectives::ReducePlace;
        const ReducePlace place = in_memory ? ReducePlace::shared_memory : ReducePlace::network;
        return table_for(onehop::collectives::reduce_tables(), place, ranks)
            .pays_from(onehop::codec_from_string(codec));
      },
      "codec"_a, "in_memory"_a, "ranks"_a,
      "Return the length in bytes from which an all-reduce of float32 over so many ranks, which share memory or not, "
      "is faster with this codec than raw, or None. The table is that of this process.");
  module.def(
      "built_in_reduce_tables", [] { return to_json(onehop::collectives::built_in_reduce_tables()); },
      "Return the built-in tables of all-reduce algorithms by length as JSON. They apply without a tuning file.");
  module.def(
      "reduce_tables", [] { return to_json(onehop::collectives::reduce_tables()); },
      "Return the tables in use: those of the tuning file, or the built-in ones.");
  module.def(
      "check_reduce_tables",
      [](const std::string& json) { return to_json(onehop::collectives::reduce_tables_from_json(json)); }, "json"_a,
      "Check such tables; return them as onehop reads them. Raises BadInput if the text is invalid.");
}
