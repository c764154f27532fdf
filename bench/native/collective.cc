// `onehop bench collectives` and `allreduce`: operations on float32.
#include <memory>
#include <utility>

#include "bench/native/bench.h"
#include "bench/native/mpi/peers.h"
#include "bench/native/shared_sum.h"
#include "onehop/collectives/collectives.h"

namespace onehop::bench {
namespace {

using collectives::Collective;

// The arrays of one candidate. In call c, rank r writes (r + 1) (c + 1) + b into the part that is for rank b.
class Arrays {
 public:
  Arrays(const Group& group, CollectiveKind kind, std::span<float> source, std::span<float> result)
      : rank_(group.rank()), ranks_(group.size()), kind_(kind), source_(source), result_(result) {}

  void dirty() noexcept {
    if (kind_ == CollectiveKind::broadcast && rank_ != 0) return;
    const bool in_source = kind_ == CollectiveKind::reduce_scatter || kind_ == CollectiveKind::all_to_all;
    const int parts = in_source ? ranks_ : 1;  // the source has a part for each rank
    const std::size_t length = source_.size() / static_cast<std::size_t>(parts);
    for (int b = 0; b < parts; ++b) {
      const float number = value(rank_, b);
      const auto part = source_.subspan(length * static_cast<std::size_t>(b), length);
      for (std::size_t i = 0; i < length; i += floats_per_line) part[i] = number;
    }
  }

  // Throws Error.
  void check(const std::string& name) {
    const bool from_all = kind_ == CollectiveKind::allgather || kind_ == CollectiveKind::all_to_all;
    const int parts = from_all ? ranks_ : 1;
    const std::size_t length = result_.size() / static_cast<std::size_t>(parts);
    for (int r = 0; r < parts; ++r) {
      const float exact = expected(r);
      const auto part = result_.subspan(length * static_cast<std::size_t>(r), length);
      for (std::size_t i = 0; i < length; i += floats_per_line) {
        if (part[i] != exact) [[unlikely]] {
          throw Error(name + " is wrong: expected " + std::to_string(exact) + ", found " + std::to_string(part[i]));
        }
      }
    }
    ++calls_;
  }

 private:
  [[nodiscard]] float value(int rank, int part) const noexcept {
    return static_cast<float>((rank + 1) * (calls_ % number_cycle + 1) + part);
  }
  // What this rank finds in part r of the result.
  [[nodiscard]] float expected(int r) const noexcept {
    if (kind_ == CollectiveKind::allgather) return value(r, 0);
    if (kind_ == CollectiveKind::all_to_all) return value(r, rank_);
    if (kind_ == CollectiveKind::broadcast) return value(0, 0);
    float sum = 0;
    for (int other = 0; other < ranks_; ++other) sum += value(other, rank_);
    return sum;
  }

  int rank_;
  int ranks_;
  CollectiveKind kind_;
  std::span<float> source_;
  std::span<float> result_;
  int calls_ = 0;
};

std::span<float> floats_of(nb::handle memory) {
  const auto span = nb::cast<const Memory*>(memory)->bytes();
  return {reinterpret_cast<float*>(span.data()), span.size() / sizeof(float)};
}

// Each other operation is (name, callable, source, result).
std::vector<OtherOperation> other_operations(const nb::list& list) {
  std::vector<OtherOperation> operations;
  for (const nb::handle item : list) {
    const auto entry = nb::cast<nb::tuple>(item);
    operations.push_back(
        {nb::cast<std::string>(entry[0]), call_of(entry[1]), floats_of(entry[2]), floats_of(entry[3])});
  }
  return operations;
}

// In every repetition, one number in each cache line of the source is written, and one in each line of the result is
// compared. From 16 KiB on, the clock runs only during the operation. A broadcast has one array.
std::vector<Samples> measured(const Group& group, CollectiveKind kind, Collective& ours, const Effort& effort,
                              bool peers, const std::vector<OtherOperation>& others) {
  Arena arena(group);
  std::vector<Buffer> buffers;
  std::vector<Candidate> candidates;
  const auto add = [&](const std::string& name, Role role, std::span<float> source, std::span<float> result,
                       const std::function<void()>& run) {
    const auto bytes = std::max(ours.source_bytes(), ours.result_bytes());
    candidates.push_back(
        checked_candidate(name, role, std::make_shared<Arrays>(group, kind, source, result), run, bytes));
  };
  const auto buffer = [&](std::int64_t bytes) {
    buffers.emplace_back(bytes);
    return floats(buffers.back());
  };
  const auto arrays = [&] {
    const auto source = buffer(ours.source_bytes());
    return std::pair(source, kind == CollectiveKind::broadcast ? source : buffer(ours.result_bytes()));
  };

  const auto [source, result] = arrays();
  add("onehop", Role::ours, source, result,
      [&ours, from = source, to = result] { ours.run(std::as_bytes(from), std::as_writable_bytes(to)); });
  if (const auto mpi = peers ? mpi_collective(group, kind) : nullptr) {
    const auto [from, to] = arrays();
    add(mpi_name(kind), Role::peer, from, to, [mpi, from = from, to = to] { mpi(from, to); });
  }
  for (const OtherOperation& other : others) add(other.name, Role::peer, other.source, other.result, other.run);
  return run_rounds(arena, candidates, effort);
}

nb::list allreduce(const Group& group, std::int64_t bytes, const Effort& effort, bool peers,
                   const std::vector<samples::ReduceVariant>& variants, const nb::list& others, bool in_place) {
  AllReduceOptions options{effort, samples::variants(variants), {}, peers, in_place};
  Buffer array;
  if (peers && SharedSum::possible(group)) {
    array = Buffer(bytes);
    const auto numbers = floats(array);
    const auto sum = std::make_shared<SharedSum>(group);
    options.others.push_back({"vLLM's algorithm", [sum, numbers] { sum->run(numbers); }, numbers, numbers});
  }
  for (auto& other : other_operations(others)) options.others.push_back(std::move(other));
  return samples::sum_samples(group, bytes, options);
}

}  // namespace

void bind_collectives(nb::module_& module) {
  module.def(
      "collective",
      [](const Group& group, int kind, Collective& ours, const Effort& effort, bool peers, const nb::list& others) {
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
