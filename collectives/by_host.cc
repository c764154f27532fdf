#include "collectives/by_host.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "collectives/arrays.h"
#include "collectives/policy.h"
#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/base/one_size.h"
#include "src/group/loss.h"

namespace onehop::collectives::detail {
namespace {

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

std::int64_t sum_of(std::span<const std::int64_t> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

std::vector<std::int64_t> times(std::vector<std::int64_t> lengths, std::int64_t factor) {
  for (std::int64_t& length : lengths) length *= factor;
  return lengths;
}

// Divides `length` into `parts` parts, multiples of the unit but for the last ones.
std::vector<std::int64_t> divided(std::int64_t length, std::size_t parts) {
  const std::int64_t unit = static_cast<std::int64_t>(parts) * block_unit;
  const std::int64_t part = (length + unit - 1) / unit * block_unit;
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < parts; ++i) {
    lengths.push_back(std::clamp(length - static_cast<std::int64_t>(i) * part, std::int64_t{0}, part));
  }
  return lengths;
}

// Consecutive blocks of one length.
std::span<std::byte> block_at(std::byte* first, std::int64_t number, std::int64_t bytes) {
  return {first + number * bytes, index(bytes)};
}

}  // namespace

Hosts ranks_by_host(const Group& group) {
  std::map<int, std::vector<int>> hosts;
  int rank = 0;
  for (const int first : base::values_of_all(group, group.local_ranks().front())) hosts[first].push_back(rank++);
  Hosts lists;
  for (auto& [unused, ranks] : hosts) lists.push_back(std::move(ranks));
  return lists;
}

template <class Step>
void HostStages::inside(const Step& step) const {
  among(group_, on_host(), step);
}
template <class Step>
void HostStages::across(const Step& step) const {
  if (in_lane()) among(group_, across_, step);
}

// An all-reduce, piece by piece: while one is on the network, the ranks of the host reduce the next.
struct HostStages::Reducer {
  // The steps for a piece of the array: a block for each lane.
  struct Steps {
    Collective reduce;
    std::optional<Collective> across;  // of the ranks in the lanes
    Collective gather;
    [[nodiscard]] std::int64_t bytes() const noexcept { return reduce.source_bytes(); }
  };

  const HostStages& stages;
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
      return block_at(whole_piece, static_cast<std::int64_t>(stages.own_), steps.reduce.result_bytes());
    };
    if (next != nullptr) {
      stages.inside([&] { next->reduce.run({source, index(next->bytes())}, own(*next, result)); });
    }
    Steps* const before = std::exchange(on_network, next);
    std::byte* const result_before = std::exchange(result_on_network, result);
    if (before != nullptr) stages.across([&] { before->across->finish(); });
    if (next != nullptr) stages.across([&] { next->across->start(own(*next, result), own(*next, result)); });
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

// How the blocks of all ranks are divided between the ranks that handle them between hosts. Lengths in elements.
struct HostStages::Shares {
  Lengths blocks;                   // by rank
  std::vector<Lengths> of;          // by host, for each lane
  std::vector<Lengths> theirs;      // blocks of the ranks of each host
  std::vector<std::int64_t> first;  // of each host, where blocks lie in the order of hosts
  std::vector<std::int64_t> place;  // of each rank, where blocks lie in the order of ranks
  Lengths in_lane;                  // of this lane, by host

  // Copies blocks between arrays in the order of ranks and of hosts.
  void reorder(const Hosts& hosts, const std::byte* from, std::byte* to, std::int64_t element_bytes,
               bool to_hosts) const {
    std::int64_t at = 0;
    for (const std::vector<int>& ranks : hosts) {
      for (const int rank : ranks) {
        const std::int64_t by_rank = place[index(rank)] * element_bytes;
        const std::int64_t length = blocks[index(rank)] * element_bytes;
        if (length > 0) std::memcpy(to + (to_hosts ? at : by_rank), from + (to_hosts ? by_rank : at), index(length));
        at += length;
      }
    }
  }
};

std::unique_ptr<HostStages> HostStages::make(const Group& group, const CollectivesOptions& options,
                                             const Hosts& hosts) {
  if (hosts.size() < 2 || hosts.size() == index(group.size())) return nullptr;
  for (std::size_t here = 0; here < hosts.size(); ++here) {
    const auto own = std::ranges::find(hosts[here], group.rank());
    if (own == hosts[here].end()) continue;
    const auto number = static_cast<std::size_t>(own - hosts[here].begin());
    return std::unique_ptr<HostStages>(new HostStages(group, options, hosts, here, number));
  }
  return nullptr;
}

HostStages::HostStages(const Group& group, const CollectivesOptions& options, const Hosts& hosts, std::size_t here,
                       std::size_t own)
    : group_(group),
      hosts_(hosts),
      here_(here),
      own_(own),
      lanes_(std::ranges::min_element(hosts, {}, &std::vector<int>::size)->size()),
      local_(group.split(hosts[here].front(), static_cast<int>(own)), options) {
  const Group lane = group.split(in_lane() ? static_cast<int>(own) : -1, static_cast<int>(here));
  if (in_lane()) {
    for (const auto& ranks : hosts_) across_.push_back(ranks[own_]);
    between_.emplace(lane, options);
  }
  int next = 0;
  in_blocks_ = std::ranges::all_of(hosts_, [&](const std::vector<int>& ranks) {
    return std::ranges::all_of(ranks, [&](int rank) { return rank == next++; });
  });
}

bool HostStages::equal_hosts() const noexcept {
  return std::ranges::all_of(hosts_, [&](const std::vector<int>& ranks) { return ranks.size() == lanes_; });
}

bool HostStages::takes(const Reduction& reduction, std::span<const std::int64_t> lengths) const {
  if (equal_hosts()) return true;
  const auto in_units = [](std::int64_t length) { return length % block_unit == 0; };
  return reduction.op != ReduceOp::mean && (reduction.codec == Codec::raw || std::ranges::all_of(lengths, in_units));
}

HostStages::Lengths HostStages::in_lanes(Lengths lengths) const {
  lengths.resize(on_host().size(), 0);
  return lengths;
}

HostStages::Shares HostStages::shares_of(std::span<const std::int64_t> lengths) const {
  Shares shares;
  shares.blocks.assign(lengths.begin(), lengths.end());
  shares.place.resize(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), shares.place.begin(), std::int64_t{0});
  std::int64_t first = 0;
  for (const std::vector<int>& ranks : hosts_) {
    Lengths theirs;
    for (const int rank : ranks) theirs.push_back(lengths[index(rank)]);
    Lengths of = ranks.size() == lanes_ ? theirs : divided(sum_of(theirs), lanes_);
    shares.first.push_back(first);
    first += sum_of(theirs);
    if (in_lane()) shares.in_lane.push_back(of[own_]);
    shares.theirs.push_back(std::move(theirs));
    shares.of.push_back(std::move(of));
  }
  return shares;
}

std::optional<Collective> HostStages::regroup(const Lengths& from, const Lengths& to) const {
  if (from == to) return std::nullopt;
  const auto range = [](const Lengths& lengths, std::size_t number) {
    const std::int64_t first = sum_of(std::span(lengths).first(number));
    return Range{first, first + lengths[number]};
  };
  const auto common = [](const Range& a, const Range& b) {
    return std::max(std::min(a.last, b.last) - std::max(a.first, b.first), std::int64_t{0});
  };
  Lengths bytes_to, bytes_from;
  for (std::size_t other = 0; other < from.size(); ++other) {
    bytes_to.push_back(common(range(from, own_), range(to, other)));
    bytes_from.push_back(common(range(from, other), range(to, own_)));
  }
  return local_.all_to_all(bytes_to, bytes_from);
}

HostSteps HostStages::allreduce(const Reduction& reduction) const {
  const auto lanes = static_cast<std::int64_t>(lanes_);
  const std::int64_t element_bytes = bytes_of(reduction.type);
  const auto steps = [&](std::int64_t block) {
    const Reduction inside{.elements = block, .type = reduction.type, .op = reduction.op};
    Reduction outside = inside;
    outside.codec = reduction.codec;
    Reducer::Steps made{local_.reduce_scatter(inside, in_lanes(Lengths(lanes_, block))),
                        {},
                        local_.allgather(in_lanes(Lengths(lanes_, block * element_bytes)))};
    if (in_lane()) made.across = between_->allreduce(outside);
    return made;
  };
  const std::int64_t block =
      std::max(by_host_piece_bytes / element_bytes / lanes / block_unit * block_unit, block_unit);
  const auto made = std::make_shared<Reducer>(Reducer{*this, {}, {}});
  made->pieces = reduction.elements / (block * lanes);
  if (made->pieces > 0) made->whole = steps(block);
  const std::int64_t rest = reduction.elements - made->pieces * block * lanes;
  if (rest > 0) {
    // The blocks of a codec begin at the same elements as with the other algorithms.
    const std::int64_t multiple = reduction.codec == Codec::raw ? 1 : block_unit;
    const std::int64_t rest_block = (rest + lanes * multiple - 1) / (lanes * multiple) * multiple;
    made->rest = steps(rest_block);
    made->rest_bytes = rest * element_bytes;
    if (rest != rest_block * lanes) made->padded.resize(index(made->rest->bytes()));
  }
  return [made](const std::byte* source, std::byte* result) { made->run(source, result); };
}

// The shares of this rank's lane of the arrays of its host, for each host, then of those of all hosts; and each rank's
// block.
HostSteps HostStages::reduce_scatter(const Reduction& reduction, std::span<const std::int64_t> lengths) const {
  const std::int64_t element_bytes = bytes_of(reduction.type);
  const Reduction here{.type = reduction.type, .op = reduction.op};
  Reduction outside = here;
  outside.codec = reduction.codec;
  Shares shares = shares_of(lengths);
  std::vector<Collective> first;
  for (const Lengths& of : shares.of) first.push_back(local_.reduce_scatter(here, in_lanes(of)));
  std::optional<Collective> second;
  if (in_lane()) second = between_->reduce_scatter(outside, shares.in_lane);
  auto last = regroup(times(in_lanes(shares.of[here_]), element_bytes), times(shares.theirs[here_], element_bytes));
  const std::int64_t all = sum_of(lengths) * element_bytes;
  std::vector<std::byte> ordered(in_blocks_ ? 0 : index(all));
  std::vector<std::byte> parts(index(sum_of(shares.in_lane) * element_bytes));
  std::vector<std::byte> share(last && second ? index(second->result_bytes()) : 0);
  return [this, element_bytes, shares = std::move(shares), first = std::move(first), second = std::move(second),
          last = std::move(last), ordered = std::move(ordered), parts = std::move(parts),
          share = std::move(share)](const std::byte* source, std::byte* result) mutable {
    if (!ordered.empty()) {
      shares.reorder(hosts_, source, ordered.data(), element_bytes, true);
      source = ordered.data();
    }
    std::byte* to = parts.data();
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      const std::span<std::byte> reduced(to, index(first[host].result_bytes()));
      inside([&] {
        first[host].run({source + shares.first[host] * element_bytes, index(first[host].source_bytes())}, reduced);
      });
      to += reduced.size();
    }
    std::byte* const sum = last ? share.data() : result;
    across([&] { second->run(parts, {sum, index(second->result_bytes())}); });
    if (last) inside([&] { last->run(share, {result, index(last->result_bytes())}); });
  };
}

// The shares of this rank's lane of the blocks on each host, and then the blocks of all ranks.
HostSteps HostStages::allgather(std::span<const std::int64_t> lengths) const {
  Shares shares = shares_of(lengths);
  auto first = regroup(shares.theirs[here_], in_lanes(shares.of[here_]));
  std::optional<Collective> second;
  if (in_lane()) second = between_->allgather(shares.in_lane);
  std::vector<Collective> last;
  for (const Lengths& of : shares.of) last.push_back(local_.allgather(in_lanes(of)));
  std::vector<std::byte> ordered(in_blocks_ ? 0 : index(sum_of(lengths)));
  std::vector<std::byte> parts(index(sum_of(shares.in_lane)));
  std::vector<std::byte> share(first ? index(first->result_bytes()) : 0);
  return [this, shares = std::move(shares), first = std::move(first), second = std::move(second),
          last = std::move(last), ordered = std::move(ordered), parts = std::move(parts),
          share = std::move(share)](const std::byte* source, std::byte* result) mutable {
    if (first) {
      inside([&] { first->run({source, index(first->source_bytes())}, share); });
      source = share.data();
    }
    across([&] { second->run({source, index(second->source_bytes())}, parts); });
    std::byte* const to = ordered.empty() ? result : ordered.data();
    const std::byte* from = parts.data();
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      const std::span<const std::byte> part(from, index(last[host].source_bytes()));
      inside([&] { last[host].run(part, {to + shares.first[host], index(last[host].result_bytes())}); });
      from += part.size();
    }
    if (!ordered.empty()) shares.reorder(hosts_, to, result, 1, false);
  };
}

// On the host of the root all ranks get the array first, and those in the lanes send a part of it each to the other
// hosts, whose ranks gather the parts.
HostSteps HostStages::broadcast(std::int64_t bytes, int root) const {
  const Lengths parts = in_lanes(divided(bytes, lanes_));
  const auto from =
      std::ranges::find_if(hosts_, [&](const auto& ranks) { return std::ranges::count(ranks, root) > 0; });
  const bool from_here = *from == on_host();
  const auto number = static_cast<int>(std::ranges::find(*from, root) - from->begin());
  std::optional<Collective> between;
  if (in_lane()) between = between_->broadcast(parts[own_], static_cast<int>(from - hosts_.begin()));
  const std::int64_t at = sum_of(std::span(parts).first(own_));
  return [this, from_here, between = std::move(between), at = index(at), length = index(parts[own_]),
          here = from_here ? local_.broadcast(bytes, number) : local_.allgather(parts)](const std::byte* source,
                                                                                        std::byte* result) mutable {
    const std::span<std::byte> whole(result, index(here.result_bytes()));
    const std::span<std::byte> mine = whole.subspan(at, length);
    if (from_here) inside([&] { here.run({source, whole.size()}, whole); });
    across([&] { between->run(mine, mine); });
    if (!from_here) inside([&] { here.run(mine, whole); });
  };
}

std::int64_t HostStages::most_sent(std::span<const std::int64_t> lengths, bool gathers) const noexcept {
  const std::int64_t all = sum_of(lengths);
  std::int64_t most = 0;
  for (const auto& ranks : hosts_) {
    std::int64_t own = 0;
    for (const int rank : ranks) own += lengths[index(rank)];
    const std::int64_t here = std::ssize(ranks);
    most = std::max(most, gathers ? own * (group_.size() - here) : here * (all - own));
  }
  return most;
}

std::int64_t HostStages::messages_from_host() const { return most_sent(Lengths(index(group_.size()), 1), true); }

CollectivesCounters HostStages::counters() const noexcept {
  const CollectivesCounters inside = local_.counters();
  const CollectivesCounters outside = between_ ? between_->counters() : CollectivesCounters{};
  return {0, inside.bytes_sent + outside.bytes_sent, inside.bytes_received + outside.bytes_received};
}

std::int64_t HostStages::staging_bytes() const noexcept {
  return local_.staging_bytes() + (between_ ? between_->staging_bytes() : 0);
}

}  // namespace onehop::collectives::detail
