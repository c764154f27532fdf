// `onehop bench collectives` and `allreduce`: operations on float32.
#include <memory>
#include <tuple>
#include <utility>

#include "bench/native/bench.h"
#include "bench/native/shared_sum.h"
#include "measure/collective.h"
#include "onehop/collectives/collectives.h"

namespace onehop::bench {
namespace {

using collectives::Collective;

// Other operations from Python: name, call, source and result.
using Others = std::vector<std::tuple<std::string, nb::callable, const Memory*, const Memory*>>;

std::vector<OtherOperation> other_operations(const Others& others) {
  const auto floats_of = [](const Memory* memory) {
    const auto bytes = memory->bytes();
    return std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  };
  std::vector<OtherOperation> operations;
  for (const auto& [name, call, source, result] : others)
    operations.push_back({name, call_of(call), {floats_of(source), floats_of(result)}});
  return operations;
}

std::vector<Samples> measured(const Group& group, CollectiveKind kind, Collective& ours, const Effort& effort,
                              bool peers, const std::vector<OtherOperation>& others) {
  CollectiveRounds rounds(group, kind, ours.source_bytes(), ours.result_bytes(), kind == CollectiveKind::broadcast);
  const FloatArrays arrays = rounds.arrays();
  rounds.add("onehop", Role::ours, arrays,
             [&ours, arrays] { ours.run(std::as_bytes(arrays.source), std::as_writable_bytes(arrays.result)); });
  if (peers) {
    const FloatArrays own = rounds.arrays();
    if (const auto mpi = mpi_collective(group, kind, own.source, own.result))
      rounds.add(mpi_name(kind), Role::peer, own, mpi);
  }
  for (const OtherOperation& other : others) rounds.add(other.name, Role::peer, other.arrays, other.run);
  return rounds.run(effort);
}

nb::list allreduce(const Group& group, std::int64_t bytes, const Effort& effort, bool peers,
                   const std::vector<samples::ReduceVariant>& variants, const Others& others, bool in_place) {
  AllReduceOptions options{effort, samples::variants(variants), {}, peers, in_place};
  Buffer array;
  if (peers && SharedSum::possible(group)) {
    array = Buffer(bytes);
    const std::span numbers(reinterpret_cast<float*>(array.data()), array.bytes().size() / sizeof(float));
    const auto sum = std::make_shared<SharedSum>(group);
    options.others.push_back({"vLLM's algorithm", [sum, numbers] { sum->run(numbers); }, {numbers, numbers}});
  }
  for (auto& other : other_operations(others)) options.others.push_back(std::move(other));
  return samples::sum_samples(group, bytes, options);
}

}  // namespace

void bind_collectives(nb::module_& module) {
  module.def(
      "collective",
      [](const Group& group, int kind, Collective& ours, const Effort& effort, bool peers, const Others& others) {
        const std::vector<OtherOperation> operations = other_operations(others);
        return samples::measure(
            [&] { return measured(group, static_cast<CollectiveKind>(kind), ours, effort, peers, operations); });
      },
      "group"_a, "kind"_a, "ours"_a, "effort"_a, "peers"_a, "others"_a,
      "Measure onehop's operation, and others, on float32. The kinds are those of COLLECTIVES, in their order.");
  module.def("allreduce", &allreduce, "group"_a, "bytes"_a, "effort"_a, "peers"_a, "variants"_a, "others"_a,
             "in_place"_a = false,
             "Measure an all-reduce of float32. Returns (name, role, microseconds of each round, error) of each "
             "candidate. `in_place`: each candidate has one array, which is source and result.");
}

}  // namespace onehop::bench
