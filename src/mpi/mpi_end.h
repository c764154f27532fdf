// The common part of both ends of a channel over MPI: slots in their own memory, requests and tags.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/group/group_state.h"
#include "src/mpi/mpi_wire.h"

namespace onehop::detail {

// The longest part: a little below the length up to which MPI libraries send without a handshake (Open MPI over TCP:
// 64 KiB with its header), because every part costs calls of the system.
constexpr std::int64_t part_bytes = 63 << 10;
// The parts of a fragment of `bytes` bytes have this length, and the last one the rest: as few parts as possible, all
// of about the same length, so that one is received while the next is sent.
[[nodiscard]] inline std::int64_t part_length(std::int64_t bytes) noexcept {
  constexpr std::int64_t line = 64;
  const std::int64_t parts = std::max<std::int64_t>((bytes + part_bytes - 1) / part_bytes, 1);
  const std::int64_t each = (bytes + parts - 1) / parts;
  return (each + line - 1) / line * line;
}
// The length of a fragment, which precedes its first part. It lies between the flag and the payload of a slot.
using Length = std::int64_t;
constexpr double cancel_limit = 0.1;  // seconds

template <class Abi>
class MpiEnd : public Endpoint {
 public:
  using Request = typename Abi::Request;

  MpiEnd(std::shared_ptr<GroupState> group, const ChannelShape& shape, std::shared_ptr<MpiWire<Abi>> wire, int peer)
      : Endpoint(std::move(group), shape),
        wire_(std::move(wire)),
        memory_(allocate_ring(shape, "MPI")),
        ring_(make_ring(shape, memory_.get())),
        cut_(shape.slot_bytes > part_bytes),
        per_slot_(cut_ ? static_cast<std::size_t>((shape.slot_bytes + part_bytes - 1) / part_bytes) : 1),
        requests_(static_cast<std::size_t>(shape.slots) * per_slot_, wire_->api.handles.request_null),
        releases_(cut_ ? static_cast<std::size_t>(shape.slots) : 0, wire_->api.handles.request_null),
        peer_(peer) {}
  ~MpiEnd() override {
    if (number_ >= 0) wire_->give_back(peer_, number_);
  }

  [[nodiscard]] bool needs_progress() const final { return true; }
  [[nodiscard]] const SlotRing& ring() const noexcept { return ring_; }
  // Takes the tags of the channel.
  void set_number(int number) {
    wire_->take(peer_, number);
    number_ = number;
  }

 protected:
  enum class Tag { first, rest, released };
  [[nodiscard]] int tag(Tag of) const noexcept { return number_ * tags_per_channel + static_cast<int>(of); }

  // Use u, counted from 1, has slot (u - 1) mod slots.
  [[nodiscard]] std::size_t index(std::uint64_t use) const noexcept {
    return static_cast<std::size_t>((use - 1) % ring_.slots);
  }
  [[nodiscard]] std::byte* slot(std::uint64_t use) const noexcept { return ring_.first + index(use) * ring_.stride; }
  [[nodiscard]] std::byte* payload(std::uint64_t use) const noexcept { return slot(use) + ring_.payload; }
  // Where the first message of a use begins.
  [[nodiscard]] std::byte* message(std::uint64_t use) const noexcept {
    return payload(use) - (cut_ ? sizeof(Length) : 0);
  }
  [[nodiscard]] Request& request(std::uint64_t use, std::size_t part = 0) noexcept {
    return requests_[index(use) * per_slot_ + part];
  }

  void send(const std::byte* from, std::int64_t bytes, Tag of, Request& request) {
    const MpiApi<Abi>& api = wire_->api;
    with_peer([&] {
      api.call("MPI_Isend", api.isend, static_cast<const void*>(from), static_cast<int>(bytes), api.handles.byte, peer_,
               tag(of), wire_->comm, &request);
    });
  }
  void receive(std::byte* to, std::int64_t bytes, Tag of, Request& request) {
    const MpiApi<Abi>& api = wire_->api;
    with_peer([&] {
      api.call("MPI_Irecv", api.irecv, static_cast<void*>(to), static_cast<int>(bytes), api.handles.byte, peer_,
               tag(of), wire_->comm, &request);
    });
  }
  [[nodiscard]] bool done(Request& request) {
    bool is_done = false;
    with_peer([&] { is_done = wire_->api.done(request); });
    return is_done;
  }

  // Withdraws receives whose messages will not come any more.
  void cancel(std::vector<Request>& posted) {
    const MpiApi<Abi>& api = wire_->api;
    // A request that has failed cannot be cancelled either: Open MPI would end the program.
    for (Request& request : posted) {
      if (wire_->over(request) || wire_->lost()) continue;
      try {
        api.call("MPI_Cancel", api.cancel, &request);
      } catch (const Error&) {
        continue;  // treated like a message that is just arriving
      }
    }
    // A message that is just arriving cannot be cancelled.
    const double end = base::steady_seconds() + (wire_->lost() ? 0 : cancel_limit);
    for (Request& request : posted) {
      while (!wire_->over(request) && base::steady_seconds() < end) sched_yield();
    }
  }
  // Keeps the memory if MPI still works on it.
  void leave_behind() {
    std::vector<Request> rest;
    for (auto* requests : {&requests_, &releases_}) {
      for (Request& request : *requests) {
        if (!wire_->over(request)) rest.push_back(request);
      }
    }
    if (!rest.empty()) wire_->linger(std::move(memory_), std::move(rest));
  }
  [[nodiscard]] bool may_clean_up() const { return group().process.is_this_process() && wire_->api.library.running(); }

  std::shared_ptr<MpiWire<Abi>> wire_;
  RingMemory memory_;
  SlotRing ring_;
  bool cut_;              // whether fragments travel in parts
  std::size_t per_slot_;  // parts of the longest fragment
  std::vector<Request> requests_;
  std::vector<Request> releases_;  // of the messages that say that a slot is free

 private:
  // Calls MPI. If MPI reports that a rank has ended, takes it for the rank at the other end, unless that one has ended
  // because of another one, and reports it to the peers.
  template <class Call>
  void with_peer(const Call& call) {
    try {
      call();
    } catch (const PeerLost& error) {
      wire_->note_lost();
      const int first = group().poll_peers(peer_).lost;
      const int lost = first < 0 ? peer_ : first;
      group().tell_lost(lost);
      throw PeerLost(lost, group().name_of(lost) + " has ended: rank " + std::to_string(group().rank) + " uses " +
                               name() + ", and " + error.what());
    }
  }

  int peer_;
  int number_ = -1;
};

}  // namespace onehop::detail
