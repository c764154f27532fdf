#include <algorithm>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "src/base/checked.h"
#include "src/base/names.h"
#include "src/schedule/schedule_size.h"

namespace onehop {

namespace {

constexpr detail::NamedValue<ReduceAlgorithm> algorithms[] = {{ReduceAlgorithm::automatic, "auto"},
                                                              {ReduceAlgorithm::one_shot, "one_shot"},
                                                              {ReduceAlgorithm::two_shot, "two_shot"},
                                                              {ReduceAlgorithm::by_host, "by_host"}};

// A multiple of the block of every codec, so that segments begin at block boundaries.
constexpr std::int64_t block = 64;
constexpr int source = 0;
constexpr int result = 1;

void check(const std::string& what, int ranks, std::int64_t elements, std::optional<int> only_rank) {
  detail::check_ranks(what, ranks, only_rank);
  if (elements < 0) throw BadInput(what + ": expected 0 elements or more, found " + std::to_string(elements));
}

void check(const std::string& what, const AllReduceSpec& spec, std::optional<int> only_rank) {
  check(what, spec.ranks, spec.elements, only_rank);
  if (spec.combine == Combine::replace) throw BadInput(what + ": expected add, min, max or prod, found replace");
  if (spec.type == ElementType::bytes) throw BadInput(what + ": expected a numeric type, found bytes");
  (void)detail::checked_multiply(spec.elements, bytes_of(spec.type), "the bytes of an all-reduce");
}

// Adds transfers in the order of (sender, receiver); with `only_rank`, only those of that rank.
class Builder {
 public:
  Builder(Schedule& schedule, std::optional<int> only_rank) : schedule_(schedule), only_rank_(only_rank) {}

  [[nodiscard]] bool wanted(int rank) const { return !only_rank_ || *only_rank_ == rank; }

  template <class Visit>
  void for_each_pair(const Visit& visit) const {
    detail::for_each_pair(schedule_.name, schedule_.ranks, only_rank_, visit);
  }

  void add(int round, const Place& from, const Place& to, Combine combine) {
    if (from.slice.elements() == 0 || !(wanted(from.rank) || wanted(to.rank))) return;
    schedule_.rounds[static_cast<std::size_t>(round)].transfers.push_back({from, to, combine, Codec::raw});
  }

  void must_cover(int rank, int array, std::int64_t elements) {
    if (wanted(rank) && elements > 0) schedule_.must_cover.push_back({rank, array, Slice::range(0, elements)});
  }

  // Copies the contribution of rank 0 in the first round and combines the others with it in the second. Rank `to`
  // reduces the part `read(to)` of the sources into the part `written(to)` of its result.
  template <class Read, class Written>
  void reduce(Combine combine, const Read& read, const Written& written) {
    for_each_pair([&](int from, int to) {
      add(from == 0 ? 0 : 1, {from, source, read(to)}, {to, result, written(to)},
          from == 0 ? Combine::replace : combine);
    });
  }

 private:
  Schedule& schedule_;
  std::optional<int> only_rank_;
};

}  // namespace

std::string_view to_string(ReduceAlgorithm algorithm) { return detail::name_of(algorithm, algorithms); }
ReduceAlgorithm reduce_algorithm_from_string(std::string_view name) {
  return detail::value_of(name, algorithms, "an algorithm");
}

std::pair<std::int64_t, std::int64_t> reduce_segment(std::int64_t elements, int ranks, int rank) {
  const std::int64_t blocks = elements / block + (elements % block != 0 ? 1 : 0);
  const std::int64_t each = blocks / ranks;
  const std::int64_t more = blocks % ranks;
  const auto begin = [&](std::int64_t r) { return std::min(elements, (r * each + std::min(r, more)) * block); };
  return {begin(rank), begin(rank + 1)};
}

Schedule allreduce(const AllReduceSpec& spec, std::optional<int> only_rank) {
  check("allreduce", spec, only_rank);
  if (spec.algorithm == ReduceAlgorithm::automatic || spec.algorithm == ReduceAlgorithm::by_host) {
    throw BadInput("allreduce: expected one_shot or two_shot, found " + std::string(to_string(spec.algorithm)) +
                   ": a schedule needs a definite algorithm, and knows no hosts");
  }
  const bool two_shot = spec.algorithm == ReduceAlgorithm::two_shot;
  const std::int64_t bytes = bytes_of(spec.type);
  Schedule schedule{"allreduce",
                    spec.ranks,
                    {{"source", bytes, spec.type, {spec.elements}}, {"result", bytes, spec.type, {spec.elements}}},
                    std::vector<Round>(two_shot ? 3 : 2),
                    {}};
  Builder build(schedule, only_rank);
  const auto part = [&](int rank) {
    if (!two_shot) return Slice::range(0, spec.elements);
    const auto [first, last] = reduce_segment(spec.elements, spec.ranks, rank);
    return Slice::range(first, last - first);
  };
  build.reduce(spec.combine, part, part);
  build.for_each_pair([&](int from, int to) {
    if (from == to) return build.must_cover(from, result, spec.elements);
    if (two_shot) build.add(2, {from, result, part(from)}, {to, result, part(from)}, Combine::replace);
  });
  return schedule;
}

Schedule reduce_scatter(const AllReduceSpec& spec, std::optional<int> only_rank) {
  check("reduce_scatter", spec, only_rank);
  const std::int64_t all = detail::checked_multiply(spec.ranks, spec.elements, "the elements of a reduce-scatter");
  const std::int64_t bytes = bytes_of(spec.type);
  Schedule schedule{"reduce_scatter",
                    spec.ranks,
                    {{"source", bytes, spec.type, {all}}, {"result", bytes, spec.type, {spec.elements}}},
                    std::vector<Round>(2),
                    {}};
  Builder build(schedule, only_rank);
  build.reduce(
      spec.combine, [&](int rank) { return Slice::range(rank * spec.elements, spec.elements); },
      [&](int) { return Slice::range(0, spec.elements); });
  for (int rank = 0; rank < spec.ranks; ++rank) build.must_cover(rank, result, spec.elements);
  return schedule;
}

Schedule broadcast(int ranks, std::int64_t elements, std::int64_t element_bytes, int root,
                   std::optional<int> only_rank) {
  check("broadcast", ranks, elements, only_rank);
  if (element_bytes < 1)
    throw BadInput("broadcast: expected element_bytes of 1 or more, found " + std::to_string(element_bytes));
  if (root < 0 || root >= ranks) {
    throw BadInput("broadcast: expected a root from 0 to " + std::to_string(ranks - 1) + ", found " +
                   std::to_string(root));
  }
  (void)detail::checked_multiply(elements, element_bytes, "the bytes of a broadcast");
  Schedule schedule{"broadcast", ranks, {{"data", element_bytes, ElementType::bytes, {elements}}}, {Round{}}, {}};
  Builder build(schedule, only_rank);
  const Slice whole = Slice::range(0, elements);
  if (!only_rank || *only_rank == root) detail::check_fits("broadcast", ranks);
  for (int to = 0; to < ranks; ++to) {
    if (to == root) continue;
    build.add(0, {root, 0, whole}, {to, 0, whole}, Combine::replace);
    build.must_cover(to, 0, elements);
  }
  return schedule;
}

}  // namespace onehop
