#include "measure/allreduce.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace onehop::measure {
namespace {

// Returns the largest error for varied numbers, divided by the largest exact sum. Also initialises the whole source.
double error_of(const Group& group, const FloatArrays& arrays, const std::function<void()>& run) {
  // Repeated, because the sines of a long array would take longer than the measurement.
  constexpr std::size_t period = 9973;
  std::vector<float> mine(period);
  std::vector<double> sums(period);
  for (int rank = 0; rank < group.size(); ++rank) {
    for (std::size_t i = 0; i < period; ++i) {
      const auto number = static_cast<float>(std::sin(0.37 * static_cast<double>(i) + 1.7 * rank));
      sums[i] += number;
      if (rank == group.rank()) mine[i] = number;
    }
  }
  for (std::size_t i = 0; i < arrays.source.size(); ++i) arrays.source[i] = mine[i % period];
  run();
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < arrays.result.size(); ++i) {
    const double exact = sums[i % period];
    largest = std::max(largest, std::abs(exact));
    worst = std::max(worst, std::abs(static_cast<double>(arrays.result[i]) - exact));
  }
  return largest == 0 ? 0 : worst / largest;
}

// The error that a codec may have in a block in which all numbers but one are zero.
float tolerance_of(Codec codec) { return codec == Codec::raw ? 0.0F : 0.25F; }

}  // namespace

AllReduceSamples allreduce(const Group& group, std::int64_t bytes, const AllReduceOptions& options) {
  const std::int64_t elements = bytes / static_cast<std::int64_t>(sizeof(float));
  bytes = elements * static_cast<std::int64_t>(sizeof(float));
  CollectiveRounds rounds(group, CollectiveKind::allreduce, bytes, bytes, options.in_place);
  const collectives::Collectives collectives(group);
  AllReduceSamples measured;
  const auto add = [&](const std::string& name, Role role, const FloatArrays& arrays, const std::function<void()>& run,
                       float tolerance = 0) {
    measured.errors.push_back(error_of(group, arrays, run));
    rounds.add(name, role, arrays, run, tolerance);
  };
  const auto add_ours = [&](const AllReduceVariant& variant, const FloatArrays& arrays) {
    const auto operation = std::make_shared<collectives::Collective>(
        collectives.allreduce({elements, ElementType::float32, collectives::ReduceOp::sum, variant.codec,
                               variant.algorithm, variant.chunk_bytes}));
    add(
        variant.name, variant.role, arrays,
        [operation, arrays] { operation->run(std::as_bytes(arrays.source), std::as_writable_bytes(arrays.result)); },
        tolerance_of(variant.codec));
  };
  for (const AllReduceVariant& variant : options.variants) add_ours(variant, rounds.arrays());
  // The same with arrays that the ranks share, where onehop is compared with others.
  std::vector<SharedArray> shared;
  const auto ours = std::ranges::find(options.variants, Role::ours, &AllReduceVariant::role);
  const bool compares = options.peers && ours != options.variants.end() && ours->codec == Codec::raw;
  if (compares && rounds.arena().one_host() && group.size() > 1) {
    const auto shared_array = [&] {
      shared.push_back(group.allocate(bytes));
      return std::span(reinterpret_cast<float*>(shared.back().bytes().data()), static_cast<std::size_t>(elements));
    };
    const std::span<float> source = shared_array();
    AllReduceVariant variant = *ours;
    variant.name += ", shared arrays";
    variant.role = Role::variant;
    add_ours(variant, {source, options.in_place ? source : shared_array()});
  }
  for (const bool persistent : {false, true}) {
    if (!options.peers) break;
    const FloatArrays arrays = rounds.arrays();
    if (const auto run = mpi_collective(group, CollectiveKind::allreduce, arrays.source, arrays.result, persistent)) {
      add(persistent ? "MPI_Allreduce_init" : "MPI_Allreduce", Role::peer, arrays, run);
    }
  }
  for (const OtherOperation& other : options.others) add(other.name, Role::peer, other.arrays, other.run);
  measured.samples = rounds.run(options.effort);
  return measured;
}

}  // namespace onehop::measure
