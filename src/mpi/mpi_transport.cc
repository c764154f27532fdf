// Channels over MPI: two-sided messages, each of which implies its flag. Both ends keep slots in their own memory. The
// bell is always set, so every flag calls this transport: it sends a complete fragment as one message, stores the flag
// in the receiver's slot on arrival, and posts a released slot to MPI as the next receive. A slot that has been sent is
// free, and no release is sent back, because MPI keeps a message that precedes its receive (long ones at the sender).
#include "src/mpi/mpi_transport.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "src/base/text.h"

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/group/agreement.h"
#include "src/group/driven.h"
#include "src/group/group_state.h"

namespace onehop::detail {
namespace {

// A bell that is always set.
constinit std::atomic<std::uint32_t> always_up{1};

constexpr std::int64_t largest_slot = std::int64_t{1} << 30;  // MPI counts in int
// How many seconds a group that closes waits for messages that have not been received yet.
constexpr double drain_limit = 2;
constexpr double cancel_limit = 0.1;

struct Free {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using RingMemory = std::unique_ptr<std::byte, Free>;

RingMemory allocate_ring(const ChannelShape& shape) {
  constexpr std::int64_t page = 4096;
  const std::int64_t bytes = (ring_bytes(shape) + page - 1) / page * page;
  const std::int64_t available = available_memory();
  if (bytes <= available) {
    if (RingMemory memory{static_cast<std::byte*>(std::aligned_alloc(page, static_cast<std::size_t>(bytes)))}) {
      std::memset(memory.get(), 0, static_cast<std::size_t>(bytes));
      return memory;
    }
  }
  throw Error("the slots of a channel over MPI need " + base::counted(bytes, "byte") + ", " +
              std::to_string(available) + " are available; ask for smaller or fewer slots");
}

// State that all channels of a group share. It outlives them, because messages may be on their way when they close.
template <class Abi>
class MpiWire final : public Driven {
 public:
  using Request = typename Abi::Request;

  MpiWire(const MpiApi<Abi>& library, typename Abi::Comm own) : api(library), comm(own) {
    // The largest tag is an attribute of the world communicator.
    int* value = nullptr;
    int found = 0;
    api.call("MPI_Comm_get_attr", api.comm_get_attr, api.handles.comm_world, int{Abi::tag_ub},
             static_cast<void*>(&value), &found);
    constexpr int least = 32767;
    // Channels use the tags below the largest, which is reserved for drive().
    tags_ = static_cast<std::uint32_t>(found != 0 ? *value : least);
    api.call("MPI_Comm_rank", api.comm_rank, comm, &rank_);
  }

  ~MpiWire() {
    leave();
    const double end = base::steady_seconds() + (lost() ? 0 : drain_limit);
    for (drain(); !settle(); drain()) {
      if (base::steady_seconds() > end) break;
      sched_yield();
    }
    // MPI may still read messages that it could not send, so their memory and the communicator are leaked.
    for (auto& entry : lingering_) static_cast<void>(entry.memory.release());
    if (lingering_.empty() && !lost()) api.free_quietly(comm);
  }

  // Tags number the channels between two ranks. When they start again from 0, the earlier channel is long closed.
  [[nodiscard]] int tag(const ChannelShape& shape) const noexcept { return static_cast<int>(shape.id % tags_); }

  void linger(RingMemory memory, std::vector<Request> requests) {
    const std::lock_guard guard(mutex_);
    lingering_.push_back({std::move(memory), std::move(requests)});
  }

  // Frees the memory of completed requests. Returns true if none is left.
  bool settle() noexcept {
    const std::lock_guard guard(mutex_);
    std::erase_if(lingering_, [this](Lingering& entry) {
      std::erase_if(entry.requests, [this](Request& request) { return over(request); });
      return entry.requests.empty();
    });
    return lingering_.empty();
  }

  // Prepares for a channel whose messages have up to `bytes` bytes.
  void expect(std::int64_t bytes) {
    longest_ = std::max(longest_, bytes);
    join();
  }

  // A probe that finds nothing makes the library progress all operations, on every communicator. A probe that finds a
  // message need not, so this one asks for a tag that is never sent.
  void drive() noexcept override {
    if (!api.library.running() || !(api.any_thread() || std::this_thread::get_id() == opener_)) return;
    try {
      int found = 0;
      api.call("MPI_Iprobe", api.iprobe, rank_, static_cast<int>(tags_), comm, &found, Abi::status_ignore());
    } catch (const Error&) {
      return;
    }
  }

  // Records that MPI has reported the end of a rank: requests may have failed and cannot be cancelled.
  void note_lost() noexcept { lost_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

  // Whether a request is complete, or can never be: for destructors.
  [[nodiscard]] bool over(Request& request) const noexcept {
    try {
      return !api.library.running() || api.done(request);
    } catch (const PeerLost&) {
      lost_.store(true, std::memory_order_relaxed);
      return true;
    } catch (const Error&) {
      return true;
    }
  }

  const MpiApi<Abi>& api;
  typename Abi::Comm comm;

 private:
  struct Lingering {
    RingMemory memory;
    std::vector<Request> requests;
  };
  // Receives messages of closed channels, so that their senders complete, and because MPICH 5 cannot free a
  // communicator with unread messages.
  void drain() noexcept {
    if (!api.library.running()) return;
    try {
      for (;;) {
        int found = 0;
        typename Abi::Message message{};
        api.call("MPI_Improbe", api.improbe, int{Abi::any_source}, int{Abi::any_tag}, comm, &found, &message,
                 Abi::status_ignore());
        if (found == 0) return;
        RingMemory scratch{static_cast<std::byte*>(std::malloc(static_cast<std::size_t>(longest_) + 1))};
        if (scratch == nullptr) return;
        Request request = api.handles.request_null;
        api.call("MPI_Imrecv", api.imrecv, static_cast<void*>(scratch.get()), static_cast<int>(longest_),
                 api.handles.byte, &message, &request);
        linger(std::move(scratch), {request});
      }
    } catch (const Error&) {
      return;  // the messages stay unread
    }
  }

  std::uint32_t tags_ = 0;
  int rank_ = 0;
  std::thread::id opener_ = std::this_thread::get_id();
  std::int64_t longest_ = 0;
  mutable std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::vector<Lingering> lingering_;
};

template <class Abi>
class MpiEnd : public Endpoint {
 public:
  using Request = typename Abi::Request;

  MpiEnd(std::shared_ptr<GroupState> group, const ChannelShape& shape, std::shared_ptr<MpiWire<Abi>> wire)
      : Endpoint(std::move(group), shape),
        wire_(std::move(wire)),
        memory_(allocate_ring(shape)),
        ring_(make_ring(shape, memory_.get())),
        requests_(static_cast<std::size_t>(shape.slots), wire_->api.handles.request_null) {}

  [[nodiscard]] bool needs_progress() const final { return true; }
  [[nodiscard]] const SlotRing& ring() const noexcept { return ring_; }

 protected:
  // Use u, counted from 1, has slot and request (u - 1) mod slots.
  [[nodiscard]] std::byte* slot(std::uint64_t use) const noexcept {
    return ring_.first + (use - 1) % ring_.slots * ring_.stride;
  }
  [[nodiscard]] Request& request(std::uint64_t use) noexcept {
    return requests_[static_cast<std::size_t>((use - 1) % ring_.slots)];
  }
  // Calls MPI. If MPI reports that a rank has ended, takes it for the rank at the other end and reports that rank to
  // the peers.
  template <class Call>
  void with_peer(int peer, const Call& call) {
    try {
      call();
    } catch (const PeerLost& error) {
      wire_->note_lost();
      this->group().own_page().reported_lost.store(static_cast<std::uint32_t>(peer) + 1, std::memory_order_release);
      throw PeerLost(peer, "rank " + std::to_string(peer) + " has ended: rank " + std::to_string(this->group().rank) +
                               " uses " + this->name() + ", and " + error.what());
    }
  }
  // Keeps the memory if MPI still works on any of the uses first + 1 to last.
  void leave_behind(std::uint64_t first, std::uint64_t last) {
    std::vector<Request> rest;
    for (std::uint64_t use = first + 1; use <= last; ++use) {
      if (!wire_->over(request(use))) rest.push_back(request(use));
    }
    if (!rest.empty()) wire_->linger(std::move(memory_), std::move(rest));
  }

  std::shared_ptr<MpiWire<Abi>> wire_;
  RingMemory memory_;
  SlotRing ring_;
  std::vector<Request> requests_;
};

template <class Abi>
class MpiReceiveEnd;

template <class Abi>
class MpiSendEnd final : public MpiEnd<Abi> {
 public:
  using MpiEnd<Abi>::MpiEnd;
  ~MpiSendEnd() override {
    if (this->group().process.is_this_process()) this->leave_behind(sent_, given_);
  }

  void published(std::uint64_t use, std::uint64_t chunks, std::int64_t bytes) override {
    if (chunks != whole) return;  // a message is sent when it is complete
    const MpiApi<Abi>& api = this->wire_->api;
    this->with_peer(this->shape().to, [&] {
      api.call("MPI_Isend", api.isend, static_cast<const void*>(this->slot(use) + this->ring_.payload),
               static_cast<int>(bytes), api.handles.byte, this->shape().to, this->wire_->tag(this->shape()),
               this->wire_->comm, &this->request(use));
    });
    given_ = use;
    progress();  // short messages complete at once, so the next put() finds its slot free
  }
  void released(std::uint64_t) override {}

  void progress() override {
    const std::uint64_t before = sent_;
    this->with_peer(this->shape().to, [&] {
      while (sent_ < given_ && this->wire_->api.done(this->request(sent_ + 1))) ++sent_;
    });
    if (sent_ != before) released_word.store(sent_, std::memory_order_release);
  }

  // On a channel of this rank to itself, the other end shows whether the wait can still succeed.
  bool self_deadlock() override {
    const auto receiver = other.lock();
    return receiver != nullptr && receiver->offered() <= sent_;
  }
  [[nodiscard]] std::uint64_t given() const noexcept { return given_; }

  std::weak_ptr<MpiReceiveEnd<Abi>> other;
  std::atomic<std::uint64_t> released_word{0};

 private:
  std::uint64_t given_ = 0;  // uses passed to MPI
  std::uint64_t sent_ = 0;   // uses that MPI has completed
};

template <class Abi>
class MpiReceiveEnd final : public MpiEnd<Abi> {
 public:
  using MpiEnd<Abi>::MpiEnd;
  ~MpiReceiveEnd() override {
    const MpiApi<Abi>& api = this->wire_->api;
    if (arrived_ == offered_ || !this->group().process.is_this_process() || !api.library.running()) return;
    // A request that has failed cannot be cancelled either: Open MPI would end the program.
    for (std::uint64_t use = arrived_ + 1; use <= offered_; ++use) {
      if (this->wire_->over(this->request(use)) || this->wire_->lost()) continue;
      try {
        api.call("MPI_Cancel", api.cancel, &this->request(use));
      } catch (const Error&) {
        continue;  // treated like a message that is just arriving
      }
    }
    // A message that is just arriving cannot be cancelled.
    const double end = base::steady_seconds() + (this->wire_->lost() ? 0 : cancel_limit);
    for (std::uint64_t use = arrived_ + 1; use <= offered_; ++use) {
      while (!this->wire_->over(this->request(use)) && base::steady_seconds() < end) sched_yield();
    }
    this->leave_behind(arrived_, offered_);
  }

  void offer_all() {
    while (offered_ < this->ring_.slots) offer(offered_ + 1);
  }

  void published(std::uint64_t, std::uint64_t, std::int64_t) override {}
  // The slot of this use is free for its next use.
  void released(std::uint64_t use) override { offer(use + this->ring_.slots); }

  void progress() override {
    this->with_peer(this->shape().from, [&] {
      while (arrived_ < offered_ && this->wire_->api.done(this->request(arrived_ + 1))) {
        ++arrived_;
        this->ring_.flag_at(this->slot(arrived_)).store(flag_value(arrived_, whole), std::memory_order_release);
      }
    });
  }

  bool self_deadlock() override {
    const auto sender = other.lock();
    return sender != nullptr && sender->given() <= arrived_;
  }
  [[nodiscard]] std::uint64_t offered() const noexcept { return offered_; }

  std::weak_ptr<MpiSendEnd<Abi>> other;
  std::atomic<std::uint64_t> released_word{0};

 private:
  void offer(std::uint64_t use) {
    const MpiApi<Abi>& api = this->wire_->api;
    this->with_peer(this->shape().from, [&] {
      api.call("MPI_Irecv", api.irecv, static_cast<void*>(this->slot(use) + this->ring_.payload),
               static_cast<int>(this->ring_.slot_bytes), api.handles.byte, this->shape().from,
               this->wire_->tag(this->shape()), this->wire_->comm, &this->request(use));
    });
    offered_ = use;
  }

  std::uint64_t offered_ = 0;  // uses whose receives are with MPI
  std::uint64_t arrived_ = 0;
};

template <class Abi>
class MpiTransport final : public Transport {
 public:
  MpiTransport(const MpiApi<Abi>& api, typename Abi::Comm own) : wire_(std::make_shared<MpiWire<Abi>>(api, own)) {}

  std::string_view name() const override { return "mpi"; }
  std::string unreachable(int) const override { return ""; }
  std::int64_t max_slot_bytes() const override { return largest_slot; }

  Opened open(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes) override {
    wire_->settle();
    std::vector<std::shared_ptr<MpiSendEnd<Abi>>> senders;
    std::vector<std::shared_ptr<MpiReceiveEnd<Abi>>> receivers;
    std::exception_ptr failure;
    try {
      for (const ChannelShape& shape : shapes) {
        if (shape.slot_bytes > largest_slot) {
          throw BadInput("expected slots of at most " + std::to_string(largest_slot) + " bytes over MPI, found " +
                         std::to_string(shape.slot_bytes) + ": ask for a smaller slot_bytes");
        }
        wire_->expect(shape.slot_bytes);
        if (shape.from == group->rank) senders.push_back(std::make_shared<MpiSendEnd<Abi>>(group, shape, wire_));
        if (shape.to == group->rank) receivers.push_back(std::make_shared<MpiReceiveEnd<Abi>>(group, shape, wire_));
        if (shape.from == shape.to) {
          senders.back()->other = receivers.back();
          receivers.back()->other = senders.back();
        }
      }
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    agree(*group, "opening channels over MPI", failure);
    Opened opened;
    for (auto& end : senders) opened.senders.push_back({end->ring(), &end->released_word, &always_up, end});
    for (auto& end : receivers) {
      end->offer_all();
      opened.receivers.push_back({end->ring(), &end->released_word, &always_up, 0, end});
    }
    return opened;
  }

 private:
  std::shared_ptr<MpiWire<Abi>> wire_;
};

}  // namespace

template <class Abi>
std::unique_ptr<Transport> make_mpi_transport(const MpiApi<Abi>& api, typename Abi::Comm own) {
  return std::make_unique<MpiTransport<Abi>>(api, own);
}

template std::unique_ptr<Transport> make_mpi_transport(const MpiApi<OpenMpiAbi>&, OpenMpiAbi::Comm);
template std::unique_ptr<Transport> make_mpi_transport(const MpiApi<MpichAbi>&, MpichAbi::Comm);
template std::unique_ptr<Transport> make_mpi_transport(const MpiApi<StandardAbi>&, StandardAbi::Comm);

}  // namespace onehop::detail
