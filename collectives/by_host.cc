#include "collectives/by_host.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "collectives/arrays.h"
#include "collectives/policy.h"
#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/group/loss.h"

namespace onehop::collectives::detail {
namespace {

// Long enough that the messages of a piece cost little beside its bytes, and short enough that the steps inside a host
// overlap with the network.
constexpr std::int64_t piece_bytes = 2 << 20;

// How long a rank waits beyond the time limit, as in waits over a network.
constexpr double seconds_for_reports = 1.2;

// The rank that others report as lost, waiting for that; -1: none. For a rank that waits inside its host for one that
// waits for a lost rank elsewhere: both reach the time limit at about the same time, and only the other one knows why.
int reported_loss(const Group& all) {
  const double end = base::steady_seconds() + seconds_for_reports;
  int lost = all.gone_rank();
  while (lost < 0 && base::steady_seconds() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lost = all.gone_rank();
  }
  return lost;
}

// Reports the rank in the whole group, because others may not be in the group that lost it.
[[noreturn]] void throw_lost(const Group& all, int lost, const Error& error) {
  report_loss(all, lost);
  const std::string name = lost >= 0 ? all.name_of(lost) : "a rank";
  throw PeerLost(lost, "an operation by hosts lost " + name + ": " + error.what());
}

// Runs a step among `ranks`, which are those of its group in the whole group `all`, and names a lost rank as the latter
// does. A rank that left this group because another one was lost may have reported that one in the whole group only.
template <class Step>
void among(const Group& all, const std::vector<int>& ranks, const Step& step) {
  try {
    step();
  } catch (const PeerLost& error) {
    const bool in_group = error.rank() >= 0 && error.rank() < static_cast<int>(ranks.size());
    const int missed = in_group ? ranks[static_cast<std::size_t>(error.rank())] : error.rank();
    const int known = all.gone_rank();
    throw_lost(all, known >= 0 ? known : missed, error);
  } catch (const Timeout& error) {
    const int lost = reported_loss(all);
    if (lost < 0) throw;
    throw_lost(all, lost, error);
  }
}

// The ranks of each host, hosts in the order of their first ranks. Collective.
std::vector<std::vector<int>> ranks_by_host(const Group& group) {
  const int first = group.local_ranks().front();
  const Gathered all = group.allgather(std::as_bytes(std::span<const int>(&first, 1)));
  std::map<int, std::vector<int>> hosts;
  for (int rank = 0; rank < group.size(); ++rank) {
    int theirs = 0;
    std::memcpy(&theirs, all[static_cast<std::size_t>(rank)].data(), sizeof theirs);
    hosts[theirs].push_back(rank);
  }
  std::vector<std::vector<int>> lists;
  for (auto& [unused, ranks] : hosts) lists.push_back(std::move(ranks));
  return lists;
}

// Consecutive blocks of one length.
std::span<std::byte> block_at(std::byte* first, std::int64_t number, std::int64_t bytes) {
  return {first + number * bytes, index(bytes)};
}

}  // namespace

template <class Step>
void HostStages::inside(const Step& step) const {
  among(group_, on_host_, step);
}
template <class Step>
void HostStages::across(const Step& step) const {
  among(group_, across_, step);
}

// An all-reduce, piece by piece: while one is on the network, the ranks of the host reduce the next.
struct HostStages::Reducer {
  // The steps for a piece of the array: a block for each rank of the host.
  struct Steps {
    Collective reduce;
    Collective across;
    Collective gather;
    [[nodiscard]] std::int64_t bytes() const noexcept { return reduce.source_bytes(); }
  };

  const HostStages& stages;
  std::int64_t block;          // this rank's number among those of its host
  std::optional<Steps> whole;  // for each of `pieces` pieces of equal length
  std::optional<Steps> rest;   // for what is left
  std::int64_t pieces = 0;
  std::int64_t rest_bytes = 0;      // of the array in `rest`
  std::vector<std::byte> padded{};  // the rest, if it has to be lengthened to blocks of equal length
  Steps* on_network = nullptr;
  std::byte* result_on_network = nullptr;

  // Takes the next piece (null: there is none) as far as the network, and completes the one before.
  void advance(Steps* next, const std::byte* source, std::byte* result) {
    const auto own = [&](const Steps& steps, std::byte* whole_piece) {
      return block_at(whole_piece, block, steps.reduce.result_bytes());
    };
    if (next != nullptr) {
      stages.inside([&] { next->reduce.run({source, index(next->bytes())}, own(*next, result)); });
    }
    Steps* const before = std::exchange(on_network, next);
    std::byte* const result_before = std::exchange(result_on_network, result);
    if (before != nullptr) stages.across([&] { before->across.finish(); });
    if (next != nullptr) stages.across([&] { next->across.start(own(*next, result), own(*next, result)); });
    if (before == nullptr) return;
    stages.inside([&] { before->gather.run(own(*before, result_before), {result_before, index(before->bytes())}); });
  }

  void run(const std::byte* source, std::byte* result) {
    on_network = nullptr;
    std::int64_t at = 0;
    for (std::int64_t piece = 0; piece < pieces; ++piece, at += whole->bytes()) {
      advance(&*whole, source + at, result + at);
    }
    if (rest && padded.empty()) advance(&*rest, source + at, result + at);
    if (rest && !padded.empty()) {
      std::memcpy(padded.data(), source + at, index(rest_bytes));
      advance(&*rest, padded.data(), padded.data());
    }
    if (on_network != nullptr) advance(nullptr, nullptr, nullptr);
    if (!padded.empty()) std::memcpy(result + at, padded.data(), index(rest_bytes));
  }
};

std::unique_ptr<HostStages> HostStages::make(const Group& group, const CollectivesOptions& options) {
  if (options.transport != TransportKind::automatic) return nullptr;
  auto hosts = ranks_by_host(group);
  const std::size_t each = hosts.front().size();
  if (hosts.size() < 2 || each < 2) return nullptr;
  if (!std::ranges::all_of(hosts, [&](const auto& ranks) { return ranks.size() == each; })) return nullptr;
  std::vector<int> on_host;
  std::size_t block = 0;
  for (const auto& ranks : hosts) {
    const auto own = std::ranges::find(ranks, group.rank());
    if (own == ranks.end()) continue;
    on_host = ranks;
    block = static_cast<std::size_t>(own - ranks.begin());
  }
  std::vector<int> across;
  for (const auto& ranks : hosts) across.push_back(ranks[block]);
  return std::unique_ptr<HostStages>(
      new HostStages(group, options, std::move(hosts), std::move(on_host), std::move(across)));
}

HostStages::HostStages(const Group& group, const CollectivesOptions& options, std::vector<std::vector<int>> hosts,
                       std::vector<int> on_host, std::vector<int> across)
    : group_(group),
      hosts_(std::move(hosts)),
      on_host_(std::move(on_host)),
      across_(std::move(across)),
      local_(group.split(on_host_.front(), group.rank()), options),
      between_(group.split(across_.front(), group.rank()), options) {
  int next = 0;
  in_blocks_ = std::ranges::all_of(hosts_, [&](const std::vector<int>& ranks) {
    return std::ranges::all_of(ranks, [&](int rank) { return rank == next++; });
  });
}

HostSteps HostStages::allreduce(const Reduction& reduction) const {
  const auto ranks = static_cast<std::int64_t>(on_host_.size());
  const std::int64_t element_bytes = bytes_of(reduction.type);
  const auto steps = [&](std::int64_t block) {
    const Reduction inside{.elements = block, .type = reduction.type, .op = reduction.op};
    Reduction outside = inside;
    outside.codec = reduction.codec;
    return Reducer::Steps{local_.reduce_scatter(inside), between_.allreduce(outside),
                          local_.allgather(block * element_bytes)};
  };
  const std::int64_t block = std::max(piece_bytes / element_bytes / ranks / block_unit * block_unit, block_unit);
  const auto made = std::make_shared<Reducer>(Reducer{*this, local_.group().rank(), {}, {}});
  made->pieces = reduction.elements / (block * ranks);
  if (made->pieces > 0) made->whole = steps(block);
  const std::int64_t rest = reduction.elements - made->pieces * block * ranks;
  if (rest > 0) {
    // The blocks of a codec begin at the same elements as with the other algorithms.
    const std::int64_t multiple = reduction.codec == Codec::raw ? 1 : block_unit;
    const std::int64_t rest_block = (rest + ranks * multiple - 1) / (ranks * multiple) * multiple;
    made->rest = steps(rest_block);
    made->rest_bytes = rest * element_bytes;
    if (rest != rest_block * ranks) made->padded.resize(index(made->rest->bytes()));
  }
  return [made](const std::byte* source, std::byte* result) { made->run(source, result); };
}

// Each rank's block of the arrays of its host, in the place that it has in the whole array, and then of those of all
// hosts.
HostSteps HostStages::reduce_scatter(const Reduction& block) const {
  const Reduction here{.elements = block.elements, .type = block.type, .op = block.op};
  Reduction outside = here;
  outside.codec = block.codec;
  return [this, first = local_.reduce_scatter(here), second = between_.reduce_scatter(outside),
          blocks = of_hosts(block.elements * bytes_of(block.type))](const std::byte* source,
                                                                    std::byte* result) mutable {
    const std::int64_t bytes = second.result_bytes();
    const auto of_host = index(first.source_bytes());
    for (std::size_t host = 0; host < across_.size(); ++host) {
      inside([&] {
        first.run({source + host * of_host, of_host}, block_at(blocks.data(), static_cast<std::int64_t>(host), bytes));
      });
    }
    across([&] { second.run(blocks, {result, index(bytes)}); });
  };
}

// The blocks of the ranks with this rank's number on each host, and then those of all ranks.
HostSteps HostStages::allgather(std::int64_t block_bytes) const {
  return [this, first = between_.allgather(block_bytes), second = local_.allgather(block_bytes),
          blocks = of_hosts(block_bytes)](const std::byte* source, std::byte* result) mutable {
    const std::int64_t bytes = first.source_bytes();
    across([&] { first.run({source, index(bytes)}, blocks); });
    for (std::int64_t host = 0; host < std::ssize(across_); ++host) {
      inside([&] { second.run(block_at(blocks.data(), host, bytes), block_at(result, host, second.result_bytes())); });
    }
  };
}

// On the host of the root all ranks get the array first, and each sends a part of it to one rank of every other host,
// whose ranks gather the parts.
HostSteps HostStages::broadcast(std::int64_t bytes, int root) const {
  const auto ranks = static_cast<std::int64_t>(on_host_.size());
  const std::int64_t part = (bytes + ranks * block_unit - 1) / (ranks * block_unit) * block_unit;
  std::vector<std::int64_t> parts;
  for (std::int64_t i = 0; i < ranks; ++i) parts.push_back(std::clamp(bytes - i * part, std::int64_t{0}, part));
  const int host = root / static_cast<int>(ranks);
  const bool from_here = hosts_[index(host)] == on_host_;
  const int own = local_.group().rank();
  return [this, from_here, between = between_.broadcast(parts[index(own)], host),
          here = from_here ? local_.broadcast(bytes, root % static_cast<int>(ranks)) : local_.allgather(parts),
          at = index(std::min(own * part, bytes))](const std::byte* source, std::byte* result) mutable {
    const std::span<std::byte> whole(result, index(here.result_bytes()));
    const std::span<std::byte> mine = whole.subspan(at, index(between.result_bytes()));
    if (from_here) inside([&] { here.run({source, whole.size()}, whole); });
    across([&] { between.run(mine, mine); });
    if (!from_here) inside([&] { here.run(mine, whole); });
  };
}

std::int64_t HostStages::messages_from_host() const noexcept {
  const auto ranks = static_cast<std::int64_t>(on_host_.size());
  return ranks * (group_.size() - ranks);
}

CollectivesCounters HostStages::counters() const noexcept {
  const CollectivesCounters inside = local_.counters();
  const CollectivesCounters outside = between_.counters();
  return {0, inside.bytes_sent + outside.bytes_sent, inside.bytes_received + outside.bytes_received};
}

std::int64_t HostStages::staging_bytes() const noexcept { return local_.staging_bytes() + between_.staging_bytes(); }

}  // namespace onehop::collectives::detail
