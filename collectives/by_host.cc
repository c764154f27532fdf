#include "collectives/by_host.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <thread>

#include "collectives/arrays.h"
#include "onehop/error.h"
#include "onehop/loss.h"
#include "src/base/clock.h"

namespace onehop::collectives::detail {
namespace {

// Long enough that the messages of a piece cost little beside its bytes, and short enough that the steps inside a host
// overlap with the network.
constexpr std::int64_t piece_bytes = 2 << 20;
// A multiple of the block of every codec.
constexpr std::int64_t unit = 64;

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

// The groups of this rank, in the numbers of the whole group.
struct Groups {
  Group all;
  std::vector<int> on_host;
  std::vector<int> across;
};

// Each rank's block of the arrays of its host, in the place that it has in the whole array, and then of those of all
// hosts.
class HostScatter final : public HostSteps {
 public:
  HostScatter(Groups groups, Collective inside, Collective across)
      : groups_(std::move(groups)),
        inside_(std::move(inside)),
        across_(std::move(across)),
        blocks_(index(across_.source_bytes())) {}

  void run(const std::byte* source, std::byte* result) override {
    const auto block = index(across_.result_bytes());
    const auto of_host = index(inside_.source_bytes());
    for (std::size_t host = 0; host < groups_.across.size(); ++host) {
      among(groups_.all, groups_.on_host,
            [&] { inside_.run({source + host * of_host, of_host}, std::span(blocks_).subspan(host * block, block)); });
    }
    among(groups_.all, groups_.across, [&] { across_.run(blocks_, {result, block}); });
  }

 private:
  Groups groups_;
  Collective inside_;
  Collective across_;
  std::vector<std::byte> blocks_;  // one for each host
};

// The blocks of the ranks with this rank's number on each host, and then those of all ranks.
class HostGather final : public HostSteps {
 public:
  HostGather(Groups groups, Collective across, Collective inside)
      : groups_(std::move(groups)),
        across_(std::move(across)),
        inside_(std::move(inside)),
        blocks_(index(across_.result_bytes())) {}

  void run(const std::byte* source, std::byte* result) override {
    const auto block = index(across_.source_bytes());
    const auto of_host = index(inside_.result_bytes());
    among(groups_.all, groups_.across, [&] { across_.run({source, block}, blocks_); });
    for (std::size_t host = 0; host < groups_.across.size(); ++host) {
      among(groups_.all, groups_.on_host,
            [&] { inside_.run(std::span(blocks_).subspan(host * block, block), {result + host * of_host, of_host}); });
    }
  }

 private:
  Groups groups_;
  Collective across_;
  Collective inside_;
  std::vector<std::byte> blocks_;  // one for each host
};

// On the host of the root all ranks get the array first, and each sends a part of it to one rank of every other host.
class HostBroadcast final : public HostSteps {
 public:
  // `inside`: a broadcast on the host of the root, else an all-gather of the parts, of which this rank's begins at
  // `at`.
  HostBroadcast(Groups groups, bool from_here, Collective across, Collective inside, std::int64_t at)
      : groups_(std::move(groups)),
        from_here_(from_here),
        across_(std::move(across)),
        inside_(std::move(inside)),
        at_(index(at)) {}

  void run(const std::byte* source, std::byte* result) override {
    const std::span<std::byte> whole(result, index(inside_.result_bytes()));
    const std::span<std::byte> part = whole.subspan(at_, index(across_.result_bytes()));
    if (from_here_) among(groups_.all, groups_.on_host, [&] { inside_.run({source, whole.size()}, whole); });
    among(groups_.all, groups_.across, [&] { across_.run(part, part); });
    if (!from_here_) among(groups_.all, groups_.on_host, [&] { inside_.run(part, whole); });
  }

 private:
  Groups groups_;
  bool from_here_;
  Collective across_;
  Collective inside_;
  std::size_t at_;
};

}  // namespace

void HostReduction::begin(Steps& steps, const std::byte* source, std::byte* result) {
  const std::int64_t block_bytes = steps.reduce.result_bytes();
  const std::span<std::byte> block(result + block_ * block_bytes, index(block_bytes));
  among(*group_, on_host_, [&] { steps.reduce.run({source, index(steps.bytes)}, block); });
  Steps* const before = on_network_;
  std::byte* const result_before = result_;
  if (before != nullptr) among(*group_, across_, [&] { before->across.finish(); });
  among(*group_, across_, [&] { steps.across.start(block, block); });
  on_network_ = &steps;
  result_ = result;
  if (before == nullptr) return;
  const std::span<std::byte> done(result_before + block_ * before->reduce.result_bytes(),
                                  index(before->reduce.result_bytes()));
  among(*group_, on_host_, [&] { before->gather.run(done, {result_before, index(before->bytes)}); });
}

void HostReduction::end() {
  if (on_network_ == nullptr) return;
  Steps& steps = *std::exchange(on_network_, nullptr);
  const std::int64_t block_bytes = steps.reduce.result_bytes();
  among(*group_, across_, [&] { steps.across.finish(); });
  among(*group_, on_host_,
        [&] { steps.gather.run({result_ + block_ * block_bytes, index(block_bytes)}, {result_, index(steps.bytes)}); });
}

void HostReduction::run(const std::byte* source, std::byte* result) {
  on_network_ = nullptr;
  std::int64_t at = 0;
  for (std::int64_t piece = 0; piece < pieces_; ++piece, at += whole_->bytes) begin(*whole_, source + at, result + at);
  if (rest_ && padded_.empty()) begin(*rest_, source + at, result + at);
  if (rest_ && !padded_.empty()) {
    std::memcpy(padded_.data(), source + at, index(rest_bytes_));
    begin(*rest_, padded_.data(), padded_.data());
  }
  end();
  if (!padded_.empty()) std::memcpy(result + at, padded_.data(), index(rest_bytes_));
}

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

HostReduction::Steps HostStages::steps(const Reduction& reduction, std::int64_t block_elements) const {
  Reduction inside{.elements = block_elements, .type = reduction.type, .op = reduction.op};
  Reduction outside = inside;
  outside.codec = reduction.codec;
  const std::int64_t block_bytes = block_elements * bytes_of(reduction.type);
  return {local_.reduce_scatter(inside), between_.allreduce(outside), local_.allgather(block_bytes),
          block_bytes * static_cast<std::int64_t>(on_host_.size())};
}

std::shared_ptr<HostSteps> HostStages::prepare(const Reduction& reduction) const {
  const auto ranks = static_cast<std::int64_t>(on_host_.size());
  const std::int64_t element_bytes = bytes_of(reduction.type);
  const std::int64_t block = std::max(piece_bytes / element_bytes / ranks / unit * unit, unit);
  auto made = std::make_shared<HostReduction>();
  made->group_ = group_;
  made->on_host_ = on_host_;
  made->across_ = across_;
  made->block_ = local_.group().rank();
  made->pieces_ = reduction.elements / (block * ranks);
  if (made->pieces_ > 0) made->whole_ = steps(reduction, block);
  const std::int64_t rest = reduction.elements - made->pieces_ * block * ranks;
  if (rest > 0) {
    // The blocks of a codec begin at the same elements as with the other algorithms.
    const std::int64_t multiple = reduction.codec == Codec::raw ? 1 : unit;
    const std::int64_t rest_block = (rest + ranks * multiple - 1) / (ranks * multiple) * multiple;
    made->rest_ = steps(reduction, rest_block);
    made->rest_bytes_ = rest * element_bytes;
    if (rest != rest_block * ranks) made->padded_.resize(index(made->rest_->bytes));
  }
  return made;
}

std::shared_ptr<HostSteps> HostStages::prepare_reduce_scatter(const Reduction& block) const {
  Reduction inside{.elements = block.elements, .type = block.type, .op = block.op};
  Reduction outside = inside;
  outside.codec = block.codec;
  return std::make_shared<HostScatter>(Groups{group_, on_host_, across_}, local_.reduce_scatter(inside),
                                       between_.reduce_scatter(outside));
}

std::shared_ptr<HostSteps> HostStages::prepare_allgather(std::int64_t block_bytes) const {
  return std::make_shared<HostGather>(Groups{group_, on_host_, across_}, between_.allgather(block_bytes),
                                      local_.allgather(block_bytes));
}

std::shared_ptr<HostSteps> HostStages::prepare_broadcast(std::int64_t bytes, int root) const {
  const auto ranks = static_cast<std::int64_t>(on_host_.size());
  const std::int64_t part = (bytes + ranks * unit - 1) / (ranks * unit) * unit;
  std::vector<std::int64_t> parts;
  for (std::int64_t i = 0; i < ranks; ++i) parts.push_back(std::clamp(bytes - i * part, std::int64_t{0}, part));
  const int host = root / static_cast<int>(ranks);
  const bool from_here = hosts_[index(host)] == on_host_;
  const int own = local_.group().rank();
  return std::make_shared<HostBroadcast>(
      Groups{group_, on_host_, across_}, from_here, between_.broadcast(parts[index(own)], host),
      from_here ? local_.broadcast(bytes, root % static_cast<int>(ranks)) : local_.allgather(parts),
      std::min(own * part, bytes));
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
