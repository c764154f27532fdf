// Channels between ranks that map each other's memory. A rank's memory holds a table of its parts, the rings of the
// channels on which it receives and, for each channel on which it sends, the line in which the receiver stores
// `released` and, of adaptive channels, behind it how long it read a slot (adaptive_stores.h) and for which epoch it
// has exposed its arrays.
#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "onehop/error.h"
#include "src/channel/transport/transport.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"

namespace onehop::detail {
namespace {

constexpr std::int64_t released_bytes = 128;
constexpr const char* opening = "opening channels";
constexpr const char* slots_name = "the slots of this rank's channels";

class SharedMemoryEndpoint final : public Endpoint {
 public:
  SharedMemoryEndpoint(std::shared_ptr<GroupState> group, const ChannelShape& shape, int peer, SharedMemory own,
                       SharedMemory other)
      : Endpoint(std::move(group), shape), peer_(peer), own_(std::move(own)), other_(std::move(other)) {}

  void published(std::uint64_t, std::uint64_t, std::int64_t) override { wake(); }
  void released(std::uint64_t) override { wake(); }
  std::int64_t back_slots() override { return own_.back(slots_name) ? own_.bytes() : 0; }

 private:
  void wake() { ring(*this->group().pages[static_cast<std::size_t>(peer_)].page); }

  int peer_;
  // Both ends' memory stays mapped as long as either end of the channel is in use here.
  SharedMemory own_;
  SharedMemory other_;
};

// A rank's memory begins with the number of its parts and a table of them, so that ranks gather nothing about the
// channels of others.
struct Part {
  std::int32_t peer = 0;
  std::uint32_t id = 0;
  std::int64_t is_ring = 0;
  std::int64_t offset = 0;
};
struct Table {
  std::int64_t parts = 0;
  [[nodiscard]] static std::int64_t bytes(std::size_t parts) {
    constexpr std::int64_t line = released_bytes;
    return (static_cast<std::int64_t>(sizeof(Table) + parts * sizeof(Part)) + line - 1) / line * line;
  }
};

class Rank {
 public:
  Rank(GroupState& group, std::span<const ChannelShape> shapes, bool backed) : group_(group) {
    for (const ChannelShape& shape : shapes) {
      if (shape.from == group.rank) parts_.push_back({shape.to, shape.id, 0, released_bytes});
      if (shape.to == group.rank) parts_.push_back({shape.from, shape.id, 1, ring_bytes(shape)});
    }
    std::int64_t total = Table::bytes(parts_.size());
    for (Part& part : parts_) total += std::exchange(part.offset, total);
    if (parts_.empty()) return;
    try {
      memory_ = backed ? SharedMemory::create(total, slots_name) : SharedMemory::create_unbacked(total, slots_name);
      const Table table{static_cast<std::int64_t>(parts_.size())};
      std::memcpy(memory_.data(), &table, sizeof table);
      std::memcpy(memory_.data() + sizeof table, parts_.data(), parts_.size() * sizeof(Part));
    } catch (const Error& error) {
      failure_ = error.what();
    }
  }

  // Tells all ranks where the memory is; throws on every rank if any rank could not allocate its memory.
  void exchange() { fds_ = gather_offers<std::int32_t>(group_, opening, memory_.fd(), failure_); }

  [[nodiscard]] const SharedMemory& memory() const { return memory_; }
  // The peer's memory, mapped once for all channels.
  [[nodiscard]] const SharedMemory& memory_of(int peer) {
    if (peer == group_.rank) return memory_;
    auto& mapped = mapped_[peer];
    if (mapped.data() == nullptr) {
      mapped =
          SharedMemory::open(group_.pages[static_cast<std::size_t>(peer)].pid, fds_[static_cast<std::size_t>(peer)], 1);
    }
    return mapped;
  }
  // The part of a channel of this rank and `peer` in the memory of `rank`, one of both, at the place that its table
  // says, which is checked.
  [[nodiscard]] std::byte* part_of(int rank, int peer, std::uint32_t id, bool is_ring, std::int64_t bytes) {
    const SharedMemory& memory = memory_of(rank);
    const auto& offsets = offsets_of(rank, rank == group_.rank ? peer : group_.rank);
    const auto found = offsets.find({id, is_ring});
    if (found == offsets.end() || found->second < 0 || found->second % released_bytes != 0 ||
        found->second > memory.bytes() - bytes) {
      throw Error("opening channels: rank " + std::to_string(rank) +
                  " announced no valid place in its memory for channel number " + std::to_string(id) +
                  "; do all ranks run the same version of onehop?");
    }
    return memory.data() + found->second;
  }

 private:
  using Offsets = std::map<std::pair<std::uint32_t, bool>, std::int64_t>;

  // The parts in the memory of `rank` that are of channels to `peer`.
  [[nodiscard]] const Offsets& offsets_of(int rank, int peer) {
    const auto [found, is_new] = offsets_.try_emplace({rank, peer});
    if (!is_new) return found->second;
    const SharedMemory& memory = memory_of(rank);
    Table table;
    std::memcpy(&table, memory.data(), sizeof table);
    const std::int64_t most = (memory.bytes() - static_cast<std::int64_t>(sizeof table)) / std::int64_t{sizeof(Part)};
    for (std::int64_t i = 0; i < std::clamp<std::int64_t>(table.parts, 0, most); ++i) {
      Part part;
      std::memcpy(&part, memory.data() + sizeof table + static_cast<std::size_t>(i) * sizeof part, sizeof part);
      if (part.peer == peer) found->second[{part.id, part.is_ring != 0}] = part.offset;
    }
    return found->second;
  }

  GroupState& group_;
  std::vector<Part> parts_;
  SharedMemory memory_;
  std::string failure_;
  std::vector<std::int32_t> fds_;
  std::map<std::pair<int, int>, Offsets> offsets_;  // by the rank that has the memory, and the other rank
  std::map<int, SharedMemory> mapped_;
};

class SharedMemoryTransport final : public Transport {
 public:
  explicit SharedMemoryTransport(GroupState& group) : group_(group) {}

  std::string_view name() const override { return "shared_memory"; }

  std::string unreachable(int rank) const override {
    const PeerPage& peer = group_.pages[static_cast<std::size_t>(rank)];
    if (peer.page != nullptr) return "";
    return "rank " + std::to_string(rank) + " shares no memory with this one: " +
           (peer.why_not.empty() ? "it is on another machine, in another container, or belongs to another user"
                                 : peer.why_not);
  }

  Opened open(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes) override {
    return open(group, shapes, true);
  }
  Opened open_unbacked(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes) override {
    return open(group, shapes, false);
  }

 private:
  static Opened open(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes, bool backed) {
    Rank own(*group, shapes, backed);
    own.exchange();
    Opened opened;
    std::string failure;
    try {
      for (const ChannelShape& shape : shapes) {
        if (shape.from == group->rank) opened.senders.push_back(end<SenderParts>(group, shape, shape.to, own));
        if (shape.to != group->rank) continue;
        opened.receivers.push_back(end<ReceiverParts>(group, shape, shape.from, own));
        // A rank that sends to itself cannot wait for a batched release.
        if (shape.from != shape.to) opened.receivers.back().release_mask = release_mask(shape.slots);
      }
    } catch (const Error& error) {
      failure = error.what();
    }
    // No rank continues, and perhaps ends, before all ranks have mapped everything. A failure is thrown on every rank.
    agree_or_lost(*group, opening, failure);
    return opened;
  }

  // The end of this rank of a channel to or from `peer`.
  template <class Parts>
  static Parts end(const std::shared_ptr<GroupState>& group, const ChannelShape& shape, int peer, Rank& own) {
    Parts made;
    made.ring = make_ring(shape, own.part_of(shape.to, shape.from, shape.id, true, ring_bytes(shape)));
    made.released = reinterpret_cast<std::atomic<std::uint64_t>*>(
        own.part_of(shape.from, shape.to, shape.id, false, released_bytes));
    if (shape.adaptive) made.reading_time = made.released + 1;
    made.bell = &group->pages[static_cast<std::size_t>(peer)].page->sleeping;
    made.endpoint = std::make_shared<SharedMemoryEndpoint>(group, shape, peer, own.memory(), own.memory_of(peer));
    return made;
  }

  GroupState& group_;
};

}  // namespace

std::unique_ptr<Transport> make_shared_memory_transport(GroupState& group) {
  return std::make_unique<SharedMemoryTransport>(group);
}

}  // namespace onehop::detail
