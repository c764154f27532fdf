// Channels between ranks that map each other's memory. A rank's memory holds the rings of the channels on which it
// receives and, for each channel on which it sends, the line in which the receiver stores `released` and, of adaptive
// channels, behind it how long it read a slot (adaptive_stores.h) and for which epoch it has exposed its arrays.
#include <cstring>
#include <map>
#include <new>

#include "onehop/error.h"
#include "src/base/text.h"
#include "src/channel/transport/transport.h"
#include "src/group/group_state.h"

namespace onehop::detail {
namespace {

constexpr std::int64_t released_bytes = 128;
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

// What a rank contributes: an Offer, then the place of each of its channels in its memory (Part), or its error message.
struct Offer {
  std::int32_t fd = -1;
  std::int32_t failed = 0;
  std::int64_t parts = 0;
};
struct Part {
  std::uint32_t id = 0;
  std::uint32_t is_ring = 0;
  std::int64_t offset = 0;
};

class Rank {
 public:
  Rank(GroupState& group, std::span<const ChannelShape> shapes, bool backed) : group_(group) {
    std::int64_t total = 0;
    for (const ChannelShape& shape : shapes) {
      if (shape.from == group.rank) {
        parts_.push_back({shape.id, 0, total});
        total += released_bytes;
      }
      if (shape.to == group.rank) {
        parts_.push_back({shape.id, 1, total});
        total += ring_bytes(shape);
      }
    }
    try {
      if (total > 0)
        memory_ = backed ? SharedMemory::create(total, slots_name) : SharedMemory::create_unbacked(total, slots_name);
    } catch (const Error& error) {
      failure_ = error.what();
    }
  }

  // Exchanges the parts of all ranks; throws on every rank if any rank could not allocate its memory.
  void exchange() {
    const Gathered all = group_.allgather(packed());
    parts_of_.resize(all.size());
    fds_.resize(all.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      Offer offer;
      if (all[r].size() < sizeof offer) {
        throw Mismatch("opening channels: rank " + std::to_string(r) +
                       " is in another collective step; do all ranks make the same steps in the same order?");
      }
      std::memcpy(&offer, all[r].data(), sizeof offer);
      const std::byte* rest = all[r].data() + sizeof offer;
      const std::size_t more = all[r].size() - sizeof offer;
      if (offer.failed != 0) {
        throw Error("opening channels failed on rank " + std::to_string(r) + ": " +
                    std::string(reinterpret_cast<const char*>(rest), more));
      }
      if (more % sizeof(Part) != 0 || offer.parts != static_cast<std::int64_t>(more / sizeof(Part))) {
        throw Mismatch("opening channels: rank " + std::to_string(r) + " announces " +
                       base::counted(offer.parts, "channel") + " in " + base::counted(more, "byte") +
                       "; do all ranks run the same version of onehop and make the same steps?");
      }
      fds_[r] = offer.fd;
      for (std::int64_t i = 0; i < offer.parts; ++i, rest += sizeof(Part)) {
        Part part;
        std::memcpy(&part, rest, sizeof part);
        parts_of_[r][{part.id, part.is_ring != 0}] = part.offset;
      }
    }
  }

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
  // A channel's part of a rank's memory, at the offset that the rank announced, which is checked.
  [[nodiscard]] std::byte* part_of(int rank, std::uint32_t id, bool is_ring, std::int64_t bytes) {
    const SharedMemory& memory = memory_of(rank);
    const auto& offsets = parts_of_[static_cast<std::size_t>(rank)];
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
  [[nodiscard]] std::vector<std::byte> packed() const {
    const Offer offer{memory_.fd(), failure_.empty() ? 0 : 1, static_cast<std::int64_t>(parts_.size())};
    std::vector<std::byte> bytes(sizeof offer);
    std::memcpy(bytes.data(), &offer, sizeof offer);
    const auto rest = failure_.empty() ? std::as_bytes(std::span<const Part>(parts_))
                                       : std::as_bytes(std::span<const char>(failure_));
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return bytes;
  }

  GroupState& group_;
  std::vector<Part> parts_;
  SharedMemory memory_;
  std::string failure_;
  std::vector<std::int32_t> fds_;
  std::vector<std::map<std::pair<std::uint32_t, bool>, std::int64_t>> parts_of_;
  std::map<int, SharedMemory> mapped_;
};

class SharedMemoryTransport final : public Transport {
 public:
  explicit SharedMemoryTransport(GroupState& group) : group_(group) {}

  std::string_view name() const override { return "shared_memory"; }

  std::string unreachable(int rank) const override {
    const PeerPage& peer = group_.pages[static_cast<std::size_t>(rank)];
    return peer.page != nullptr ? ""
                                : "rank " + std::to_string(rank) + " shares no memory with this one: " + peer.why_not;
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
        if (shape.from == group->rank) opened.senders.push_back(sender(group, shape, own));
        if (shape.to == group->rank) opened.receivers.push_back(receiver(group, shape, own));
      }
    } catch (const Error& error) {
      failure = error.what();
    }
    // No rank continues, and perhaps ends, before all ranks have mapped everything. A failure is thrown on every rank.
    const Gathered failures = group->allgather(std::as_bytes(std::span<const char>(failure)));
    for (std::size_t r = 0; r < failures.size(); ++r) {
      if (failures[r].empty()) continue;
      group->throw_if_lost("opening channels");
      throw Error("opening channels failed on rank " + std::to_string(r) + ": " +
                  std::string(reinterpret_cast<const char*>(failures[r].data()), failures[r].size()));
    }
    return opened;
  }

  static SenderParts sender(const std::shared_ptr<GroupState>& group, const ChannelShape& shape, Rank& own) {
    const SharedMemory& peer = own.memory_of(shape.to);
    SenderParts made;
    made.ring = make_ring(shape, own.part_of(shape.to, shape.id, true, ring_bytes(shape)));
    made.released =
        reinterpret_cast<std::atomic<std::uint64_t>*>(own.part_of(shape.from, shape.id, false, released_bytes));
    if (shape.adaptive) made.reading_time = made.released + 1;
    made.bell = &group->pages[static_cast<std::size_t>(shape.to)].page->sleeping;
    made.endpoint = std::make_shared<SharedMemoryEndpoint>(group, shape, shape.to, own.memory(), peer);
    return made;
  }

  static ReceiverParts receiver(const std::shared_ptr<GroupState>& group, const ChannelShape& shape, Rank& own) {
    const SharedMemory& peer = own.memory_of(shape.from);
    ReceiverParts made;
    made.ring = make_ring(shape, own.part_of(shape.to, shape.id, true, ring_bytes(shape)));
    made.released =
        reinterpret_cast<std::atomic<std::uint64_t>*>(own.part_of(shape.from, shape.id, false, released_bytes));
    if (shape.adaptive) made.reading_time = made.released + 1;
    made.bell = &group->pages[static_cast<std::size_t>(shape.from)].page->sleeping;
    // A rank that sends to itself cannot wait for a batched release.
    made.release_mask = shape.from == shape.to ? 0 : release_mask(shape.slots);
    made.endpoint = std::make_shared<SharedMemoryEndpoint>(group, shape, shape.from, own.memory(), peer);
    return made;
  }

  GroupState& group_;
};

}  // namespace

std::unique_ptr<Transport> make_shared_memory_transport(GroupState& group) {
  return std::make_unique<SharedMemoryTransport>(group);
}

}  // namespace onehop::detail
