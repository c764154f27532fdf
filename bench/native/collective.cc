// `onehop bench collectives`: reduce-scatter, all-gather, broadcast and all-to-all of float32.
#include <algorithm>
#include <memory>
#include <utility>

#include "bench/native/benchmarks.h"
#include "onehop/collectives/collectives.h"

namespace onehop::bench {
namespace {

// The arrays of one candidate. In call c, rank r writes (r + 1) (c + 1) + b into the part that is for rank b.
class Arrays {
 public:
  Arrays(const Group& group, CollectiveKind kind, std::span<float> source, std::span<float> result)
      : rank_(group.rank()), ranks_(group.size()), kind_(kind), source_(source), result_(result) {}

  void dirty() noexcept {
    if (kind_ == CollectiveKind::broadcast && rank_ != 0) return;
    const std::size_t parts = in_source() ? static_cast<std::size_t>(ranks_) : 1;
    const std::size_t part = source_.size() / parts;
    for (std::size_t b = 0; b < parts; ++b) {
      const float number = value(rank_, in_source() ? static_cast<int>(b) : 0);
      for (std::size_t i = b * part; i < (b + 1) * part; i += floats_per_line) source_[i] = number;
    }
  }

  // Throws Error.
  void check(const std::string& name) {
    const bool from_all = kind_ == CollectiveKind::allgather || kind_ == CollectiveKind::all_to_all;
    const std::size_t parts = from_all ? static_cast<std::size_t>(ranks_) : 1;
    const std::size_t part = result_.size() / parts;
    for (std::size_t r = 0; r < parts; ++r) {
      const float exact = expected(static_cast<int>(r));
      for (std::size_t i = r * part; i < (r + 1) * part; i += floats_per_line) {
        if (result_[i] != exact) [[unlikely]] {
          throw Error(name + " is wrong: expected " + std::to_string(exact) + " at " + std::to_string(i) + ", found " +
                      std::to_string(result_[i]));
        }
      }
    }
    ++calls_;
  }

 private:
  // Whether the source has a part for each rank.
  [[nodiscard]] bool in_source() const noexcept {
    return kind_ == CollectiveKind::reduce_scatter || kind_ == CollectiveKind::all_to_all;
  }
  [[nodiscard]] float value(int rank, int part) const noexcept {
    return static_cast<float>((rank + 1) * (calls_ % number_cycle + 1) + part);
  }
  // What this rank finds in part r of the result.
  [[nodiscard]] float expected(int r) const noexcept {
    switch (kind_) {
      case CollectiveKind::reduce_scatter: {
        float sum = 0;
        for (int other = 0; other < ranks_; ++other) sum += value(other, rank_);
        return sum;
      }
      case CollectiveKind::allgather:
        return value(r, 0);
      case CollectiveKind::all_to_all:
        return value(r, rank_);
      case CollectiveKind::broadcast:
        break;
    }
    return value(0, 0);
  }

  int rank_;
  int ranks_;
  CollectiveKind kind_;
  std::span<float> source_;
  std::span<float> result_;
  int calls_ = 0;
};

collectives::Collective ours(const collectives::Collectives& all, CollectiveKind kind, std::size_t source,
                             std::size_t result) {
  const auto ranks = static_cast<std::size_t>(all.group().size());
  const auto block = static_cast<std::int64_t>(source / ranks * sizeof(float));
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return all.reduce_scatter({.elements = static_cast<std::int64_t>(result)});
    case CollectiveKind::allgather:
      return all.allgather(std::vector<std::int64_t>(ranks, static_cast<std::int64_t>(source * sizeof(float))));
    case CollectiveKind::all_to_all:
      return all.all_to_all(std::vector<std::int64_t>(ranks, block), std::vector<std::int64_t>(ranks, block));
    case CollectiveKind::broadcast:
      break;
  }
  return all.broadcast(static_cast<std::int64_t>(source * sizeof(float)), 0);
}

}  // namespace

CollectiveLengths collective_lengths(CollectiveKind kind, std::int64_t bytes, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t lines = static_cast<std::size_t>(bytes) / (floats_per_line * sizeof(float) * n);
  const std::size_t block = std::max<std::size_t>(lines, 1) * floats_per_line;
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return {n * block, block};
    case CollectiveKind::allgather:
      return {block, n * block};
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast:
      break;
  }
  return {n * block, n * block};
}

std::vector<Samples> collective(const Group& group, CollectiveKind kind, std::int64_t bytes, const Effort& effort,
                                bool peers, const std::vector<OtherOperation>& others) {
  Arena arena(group);
  const collectives::Collectives collectives(group);
  const CollectiveLengths lengths = collective_lengths(kind, bytes, group.size());
  std::vector<Buffer> buffers;
  std::vector<Candidate> candidates;
  const auto add = [&](const std::string& name, Role role, std::span<float> source, std::span<float> result,
                       const std::function<void()>& run) {
    candidates.push_back(
        checked_candidate(name, role, std::make_shared<Arrays>(group, kind, source, result), run, bytes));
  };
  const auto buffer = [&](std::size_t length) {
    buffers.emplace_back(static_cast<std::int64_t>(length * sizeof(float)));
    return floats(buffers.back()).first(length);
  };
  const auto arrays = [&] {
    const auto source = buffer(lengths.source);
    return std::pair(source, kind == CollectiveKind::broadcast ? source : buffer(lengths.result));
  };

  const auto [source, result] = arrays();
  const auto operation =
      std::make_shared<collectives::Collective>(ours(collectives, kind, source.size(), result.size()));
  add("onehop", Role::ours, source, result,
      [operation, from = source, to = result] { operation->run(std::as_bytes(from), std::as_writable_bytes(to)); });
  std::vector<std::unique_ptr<CollectivePeer>> mpi;
  if (peers) mpi = mpi_collective_peers(group);
  for (const auto& peer : mpi) {
    const auto [from, to] = arrays();
    add(peer->name(kind), Role::peer, from, to,
        [one = peer.get(), kind, from = from, to = to] { one->run(kind, from, to); });
  }
  for (const OtherOperation& other : others) add(other.name, Role::peer, other.source, other.result, other.run);
  return run_rounds(arena, candidates, effort);
}

}  // namespace onehop::bench
