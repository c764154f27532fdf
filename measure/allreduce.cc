#include "measure/allreduce.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "measure/mpi/peers.h"
#include "onehop/error.h"

namespace onehop::measure {
namespace {

// One candidate's arrays, and the numbers that are written to and expected in them.
class Arrays {
 public:
  // `tolerance` is relative to the exact sum.
  Arrays(const Group& group, std::span<float> source, std::span<float> result, float tolerance)
      : rank_(group.rank()), ranks_(group.size()), source_(source), result_(result), tolerance_(tolerance) {}

  // Writes one number per line, different from line to line and from call to call, small enough for exact sums.
  void dirty() noexcept {
    const float base = static_cast<float>((rank_ + 1) * (calls_ % number_cycle + 1));
    for (std::size_t i = 0; i < source_.size(); i += floats_per_line) source_[i] = base;
  }

  // Checks one number in every line. Throws Error.
  void check(const std::string& name) {
    const int sum_of_ranks = ranks_ * (ranks_ + 1) / 2;
    const float exact = static_cast<float>(sum_of_ranks * (calls_ % number_cycle + 1));
    float largest = exact;
    float smallest = exact;
    for (std::size_t i = 0; i < result_.size(); i += floats_per_line) {
      largest = std::max(largest, result_[i]);
      smallest = std::min(smallest, result_[i]);
    }
    ++calls_;
    const float error = std::max(largest - exact, exact - smallest) / exact;
    if (!(error <= tolerance_)) [[unlikely]] {
      throw Error(name + " sums wrongly: expected " + std::to_string(exact) + ", found from " +
                  std::to_string(smallest) + " to " + std::to_string(largest));
    }
  }

  // Returns the largest error for varied numbers, divided by the largest exact sum. Also initialises the whole source.
  [[nodiscard]] double error_of(const std::function<void()>& run) {
    constexpr std::size_t period = 9973;
    std::vector<float> mine(
        period);  // repeated, because the sines of a long array would take longer than the measurement
    std::vector<double> sums(period);
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::size_t i = 0; i < period; ++i) {
        const auto number = static_cast<float>(std::sin(0.37 * static_cast<double>(i) + 1.7 * rank));
        sums[i] += number;
        if (rank == rank_) mine[i] = number;
      }
    }
    for (std::size_t i = 0; i < source_.size(); ++i) source_[i] = mine[i % period];
    run();
    double worst = 0;
    double largest = 0;
    for (std::size_t i = 0; i < result_.size(); ++i) {
      const double exact = sums[i % period];
      largest = std::max(largest, std::abs(exact));
      worst = std::max(worst, std::abs(static_cast<double>(result_[i]) - exact));
    }
    return largest == 0 ? 0 : worst / largest;
  }

 private:
  int rank_;
  int ranks_;
  std::span<float> source_;
  std::span<float> result_;
  float tolerance_;
  int calls_ = 0;
};

// The error that a codec may have in a block in which all numbers but one are zero.
float tolerance_of(Codec codec) { return codec == Codec::raw ? 0.0F : 0.25F; }

}  // namespace

AllReduceSamples allreduce(const Group& group, std::int64_t bytes, const AllReduceOptions& options) {
  const std::int64_t elements = bytes / static_cast<std::int64_t>(sizeof(float));
  Arena arena(group);
  const collectives::Collectives collectives(group);
  std::vector<Buffer> buffers;
  std::vector<Candidate> candidates;
  AllReduceSamples measured;
  const auto add = [&](const std::string& name, Role role, std::span<float> source, std::span<float> result,
                       const std::function<void()>& run, float tolerance) {
    const auto arrays = std::make_shared<Arrays>(group, source, result, tolerance);
    measured.errors.push_back(arrays->error_of(run));
    candidates.push_back(checked_candidate(name, role, arrays, run, bytes));
  };
  const auto buffer = [&] {
    buffers.emplace_back(bytes);
    return floats(buffers.back()).first(static_cast<std::size_t>(elements));
  };
  const auto arrays = [&] {
    const auto source = buffer();
    return std::pair(source, options.in_place ? source : buffer());
  };

  for (const AllReduceVariant& variant : options.variants) {
    const auto [source, result] = arrays();
    auto operation = std::make_shared<collectives::Collective>(
        collectives.allreduce({elements, ElementType::float32, collectives::ReduceOp::sum, variant.codec,
                               variant.algorithm, variant.chunk_bytes}));
    add(
        variant.name, variant.role, source, result,
        [operation, from = source, to = result] { operation->run(std::as_bytes(from), std::as_writable_bytes(to)); },
        tolerance_of(variant.codec));
  }
  // The same with arrays that the ranks share, where onehop is compared with others.
  std::vector<SharedArray> shared;
  const auto ours = std::ranges::find(options.variants, Role::ours, &AllReduceVariant::role);
  const bool compares = options.peers && ours != options.variants.end() && ours->codec == Codec::raw;
  if (compares && arena.one_host() && group.size() > 1) {
    const auto shared_array = [&] {
      shared.push_back(group.allocate(bytes));
      return std::span(reinterpret_cast<float*>(shared.back().bytes().data()), static_cast<std::size_t>(elements));
    };
    const std::span<float> source = shared_array();
    const std::span<float> result = options.in_place ? source : shared_array();
    auto operation = std::make_shared<collectives::Collective>(collectives.allreduce(
        {elements, ElementType::float32, collectives::ReduceOp::sum, Codec::raw, ours->algorithm, ours->chunk_bytes}));
    add(
        ours->name + ", shared arrays", Role::variant, source, result,
        [operation, source, result] { operation->run(std::as_bytes(source), std::as_writable_bytes(result)); }, 0.0F);
  }
  for (const bool persistent : {false, true}) {
    if (!options.peers) break;
    const auto [source, result] = arrays();
    if (const auto run = mpi_allreduce(group, source, result, persistent)) {
      add(persistent ? "MPI_Allreduce_init" : "MPI_Allreduce", Role::peer, source, result, run, 0.0F);
    }
  }
  for (const OtherOperation& other : options.others)
    add(other.name, Role::peer, other.source, other.result, other.run, 0.0F);
  measured.samples = run_rounds(arena, candidates, options.effort);
  return measured;
}

}  // namespace onehop::measure
