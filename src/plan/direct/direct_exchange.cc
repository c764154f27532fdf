#include "src/plan/direct/direct_exchange.h"

#include <algorithm>
#include <cstring>

#include "onehop/error.h"
#include "src/channel/channel_agreement.h"

namespace onehop::detail {

std::vector<Cycle> cycles_of(const BitPermutation& exchange, int rank) {
  const int local = exchange.local_bits;
  std::vector<int> moving;
  for (int bit = 0; bit < local; ++bit) {
    if (exchange.to[static_cast<std::size_t>(bit)] != bit) moving.push_back(bit);
  }
  const auto next = [&](std::uint64_t index) {
    std::uint64_t moved = 0;
    for (std::size_t bit = 0; bit < exchange.to.size(); ++bit) {
      moved |= (index >> bit & 1) << exchange.to[bit];
    }
    return moved;
  };
  const std::uint64_t in_rank = (std::uint64_t{1} << local) - 1;
  std::vector<Cycle> cycles;
  for (std::uint64_t pattern = 0; pattern < std::uint64_t{1} << moving.size(); ++pattern) {
    const auto start_rank = static_cast<std::uint64_t>(rank);
    std::uint64_t start = start_rank << local;
    for (std::size_t i = 0; i < moving.size(); ++i) start |= (pattern >> i & 1) << moving[i];
    Cycle cycle;
    std::uint64_t index = start;
    do {
      cycle.push_back({static_cast<int>(index >> local), index & in_rank});
      index = next(index);
    } while (index != start);
    if (cycle.size() == 1) continue;
    std::rotate(cycle.begin(),
                std::min_element(cycle.begin(), cycle.end(),
                                 [](const CyclePlace& a, const CyclePlace& b) { return a.rank < b.rank; }),
                cycle.end());
    cycles.push_back(std::move(cycle));
  }
  const auto distance = [rank](const Cycle& cycle) {
    int nearest = -1;
    for (const CyclePlace& place : cycle) {
      if (place.rank != rank && (nearest < 0 || (place.rank ^ rank) < nearest)) nearest = place.rank ^ rank;
    }
    return nearest;
  };
  std::stable_sort(cycles.begin(), cycles.end(),
                   [&](const Cycle& a, const Cycle& b) { return distance(a) < distance(b); });
  return cycles;
}

bool shares_lines(const BitPermutation& exchange, std::int64_t element_bytes) {
  int moving = 0;
  bool in_line = false;
  for (int bit = 0; bit < exchange.local_bits; ++bit) {
    if (exchange.to[static_cast<std::size_t>(bit)] == bit) continue;
    ++moving;
    in_line |= element_bytes << bit < 64;
  }
  return in_line && moving >= 2;
}

CycleGroup connected_cycles(const BitPermutation& exchange, int rank, std::int64_t element_bytes) {
  CycleGroup group;
  if (!shares_lines(exchange, element_bytes)) return group;
  group.ranks = {rank};
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const int member = group.ranks[i];
    for (Cycle& cycle : cycles_of(exchange, member)) {
      for (const CyclePlace& place : cycle) {
        if (std::ranges::find(group.ranks, place.rank) == group.ranks.end()) group.ranks.push_back(place.rank);
      }
      // Each cycle once: on its lowest rank, which comes first in it.
      if (cycle.front().rank == member) group.cycles.push_back(std::move(cycle));
    }
  }
  std::ranges::sort(group.ranks);
  return group;
}

SharedArrays::SharedArrays(GroupState& group, std::span<const std::span<std::byte>> arrays, bool allowed,
                           std::uint64_t permutations)
    : group_(group), arrays_(arrays.size()) {
  for (const auto& array : arrays) {
    own_.push_back(reinterpret_cast<std::uintptr_t>(array.data()));
  }
  const auto ranks = static_cast<std::size_t>(group.size);
  std::vector<Location> own(arrays.size());
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    SharedMemory memory = SharedMemory::holding(arrays[a]);
    if (memory.data() == nullptr) continue;
    if (allowed) own[a] = {memory.fd(), 0, arrays[a].data() - memory.data()};
    own_memory_.push_back(std::move(memory));
  }
  // Only cycles of a permutation involve ranks that share memory with each other but perhaps not with this one.
  const std::size_t row = permutations == 0 ? 0 : ranks;
  std::vector<std::byte> mine(sizeof permutations + row);
  std::memcpy(mine.data(), &permutations, sizeof permutations);
  for (std::size_t r = 0; r < row; ++r) {
    mine[sizeof permutations + r] = std::byte{group.shares_memory(static_cast<int>(r))};
  }
  const auto places = std::as_bytes(std::span<const Location>(own));
  mine.insert(mine.end(), places.begin(), places.end());
  const Gathered all = group.allgather(mine);
  throw_refusal(group, all, "making a plan");
  for (std::size_t r = 0; r < ranks; ++r) {
    std::uint64_t theirs = 0;
    if (all[r].size() >= sizeof theirs) std::memcpy(&theirs, all[r].data(), sizeof theirs);
    if (theirs == permutations && all[r].size() == mine.size()) continue;
    throw Mismatch("the schedules of rank " + std::to_string(group.rank) + " and rank " + std::to_string(r) +
                   " have different arrays or permute different bits in their rounds; build both with the same "
                   "parameters");
  }
  for (const auto& theirs : all) {
    const std::byte* at = theirs.data() + sizeof permutations;
    shares_.insert(shares_.end(), at, at + row);
    at += row;
    for (std::size_t a = 0; a < arrays_; ++a, at += sizeof(Location)) {
      std::memcpy(&locations_.emplace_back(), at, sizeof(Location));
    }
  }
  mapped_of_.resize(ranks);
}

bool SharedArrays::shares(int a, int b) const {
  const auto ranks = static_cast<std::size_t>(group_.size);
  return a == b || shares_[static_cast<std::size_t>(a) * ranks + static_cast<std::size_t>(b)] != std::byte{0};
}

bool SharedArrays::holds(const std::vector<int>& ranks, int array) const {
  return std::ranges::all_of(
      ranks, [&](int a) { return holds(a, array) && std::ranges::all_of(ranks, [&](int b) { return shares(a, b); }); });
}

SharedMemory SharedArrays::open_memory(int rank, int fd, std::uintptr_t low_bits) {
  try {
    return SharedMemory::open(group_.pages[static_cast<std::size_t>(rank)].pid, fd, 1, low_bits);
  } catch (const Error&) {
    group_.throw_if_lost("making a plan");  // the memory went with its process
    throw;
  }
}

std::byte* SharedArrays::at(int rank, int array, std::int64_t bytes) {
  const Location& location = this->location(rank, array);
  auto& known = mapped_of_[static_cast<std::size_t>(rank)];
  const auto place_in = [&](const SharedMemory& memory) {
    if (location.offset < 0 || location.offset > memory.bytes() - bytes) {
      throw Error("making a plan: array " + std::to_string(array) + " of rank " + std::to_string(rank) +
                  " does not lie in the memory that the rank names; do all ranks run the same version of onehop?");
    }
    return memory.data() + location.offset;
  };
  for (const auto& [fd, memory] : known) {
    if (fd == location.fd) return place_in(memory);
  }
  // The exchange walks through both arrays at the same offsets, so their lines must not evict each other. Some (AMD)
  // processors find a line in the first-level cache by a hash of the lower 28 address bits, which is sure to differ
  // only between pages that are a few pages apart. Measured: 15 ms instead of 54 for 128 MiB each.
  // Memory that may have huge pages needs an address that is a multiple of one, as in the rank that made it.
  constexpr std::uintptr_t huge_page = std::uintptr_t{2} << 20U;
  const std::uintptr_t begin = own_[static_cast<std::size_t>(array)] - static_cast<std::uintptr_t>(location.offset);
  const std::uintptr_t unit = begin % huge_page == 0 ? huge_page : 4096;
  const std::uintptr_t low_bits = begin + 5 * (1 + mapped_.size() % 7) * unit;
  SharedMemory memory = open_memory(rank, location.fd, low_bits);
  known.emplace_back(location.fd, memory);
  mapped_.push_back(memory);
  return place_in(memory);
}

std::vector<SharedMemory> SharedArrays::take_memory() {
  std::ranges::move(own_memory_, std::back_inserter(mapped_));
  return std::move(mapped_);
}

std::uint32_t DirectExchange::partner_for(std::uint32_t signals) {
  const auto found = std::ranges::find(partners_, signals, &Partner::signals);
  if (found != partners_.end()) return static_cast<std::uint32_t>(found - partners_.begin());
  partners_.push_back({signals});
  return static_cast<std::uint32_t>(partners_.size() - 1);
}

void DirectExchange::add(std::vector<std::vector<std::byte*>> cycles, const Runs& runs, std::size_t number,
                         std::size_t ranks, const std::vector<std::uint32_t>& signals) {
  // If the cycles of a group run one after the other, the lines that they share must stay in the second-level cache
  // until the last of them.
  constexpr std::uint64_t lines_at_once = 4096;
  Share share;
  share.runs = runs;
  // An equal part of the elements for each rank, in whole runs, and in whole lines if cycles share lines.
  const std::uint64_t unit = cycles.size() > 1 ? std::max<std::uint64_t>(1, runs.in_line()) : 1;
  share.first = runs.count() / unit * number / ranks * unit;
  share.last = runs.count() / unit * (number + 1) / ranks * unit;
  share.at_once = std::max<std::uint64_t>(1, share.last - share.first);
  if (cycles.size() > 1) {
    share.lines = LineExchange(runs, cycles);
    share.at_once = unit * std::max<std::uint64_t>(16, lines_at_once / (2 * cycles.size()));
  }
  share.cycles = std::move(cycles);
  for (const std::uint32_t one : signals) {
    share.partners.push_back(partner_for(one));
    ++partners_[share.partners.back()].shares;
  }
  shares_.push_back(std::move(share));
}

void DirectExchange::begin(std::span<Signals> signals) {
  for (Share& share : shares_) share.moved = false;
  for (Partner& partner : partners_) {
    partner.shares_left = partner.shares;
    partner.ready = partner.done = false;
    // A slot should be free: the peer released this rank's last "ready" before it sent its own last "done", which this
    // rank has received.
    Sender& sender = signals[partner.signals].sender;
    if (!sender.ready()) sender.wait_released();
    sender.put();
  }
  open_ = partners_.size();
}

bool DirectExchange::move_share(Share& share, std::span<Signals> signals) {
  if (share.moved) return false;
  if (!std::ranges::all_of(share.partners, [&](std::uint32_t p) { return partners_[p].ready; })) return false;
  if (!share.lines.empty()) share.lines.run(share.runs, share.first, share.last);
  for (std::uint64_t run = share.first; share.lines.empty() && run < share.last; run += share.at_once) {
    for (const auto& places : share.cycles) {
      rotate(share.runs, places, run, std::min(run + share.at_once, share.last));
    }
  }
  share.moved = true;
  for (const std::uint32_t p : share.partners) {
    Partner& partner = partners_[p];
    if (--partner.shares_left == 0) signals[partner.signals].sender.put();
  }
  return true;
}

bool DirectExchange::move(std::span<Signals> signals) {
  bool moved = false;
  for (Partner& partner : partners_) {
    Receiver& receiver = signals[partner.signals].receiver;
    while (!partner.done && receiver.ready()) {
      receiver.release();
      moved = true;
      if (partner.ready) --open_;
      partner.done = partner.ready;
      partner.ready = true;
    }
  }
  for (Share& share : shares_) moved |= move_share(share, signals);
  return moved;
}

bool DirectExchange::anything_to_do(std::span<const Signals> signals) const {
  return std::ranges::any_of(
      partners_, [&](const Partner& partner) { return !partner.done && signals[partner.signals].receiver.ready(); });
}

int DirectExchange::waits_for(std::span<const Signals> signals) const {
  // A share moves once all of its ranks are ready, so ranks that are ready wait for those that are not.
  auto found = std::ranges::find(partners_, false, &Partner::ready);
  if (found == partners_.end()) found = std::ranges::find(partners_, false, &Partner::done);
  return found == partners_.end() ? -1 : signals[found->signals].receiver.peer();
}

}  // namespace onehop::detail
