// Channels over MPI: two-sided, the flag in the message. Both ends keep their slots in memory of their own. A bell that
// always rings brings every flag here: a whole fragment is sent as one message; where it arrives the flag is stored in
// the receiver's slot, and a released slot is offered to MPI for the next message. What has been sent is free again: no
// word goes back, because MPI itself keeps a message that comes before its receive (and long ones wait at the sender).
#include "src/mpi/mpi_transport.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "onehop/error.h"
#include "src/group/agreement.h"
#include "src/group/driven.h"
#include "src/group/group_state.h"

namespace onehop::detail {
namespace {

// Rung at every flag.
constinit std::atomic<std::uint32_t> always_up{1};

constexpr std::int64_t largest_slot = std::int64_t{1} << 30;  // MPI counts in int
// How long the end of a group waits for messages that nobody has received yet.
constexpr std::chrono::seconds patience{2};
constexpr std::chrono::milliseconds patience_with_cancelled{100};

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
  throw Error("the slots of a channel over MPI need " + std::to_string(bytes) + " bytes, " + std::to_string(available) +
              " are available; ask for smaller or fewer slots");
}

// What all channels of a group share, and what outlives them: messages on their way when their channel was closed.
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
    // The largest of all is of no channel (drive()).
    tags_ = static_cast<std::uint32_t>(found != 0 ? *value : least);
    api.call("MPI_Comm_rank", api.comm_rank, comm, &rank_);
  }

  ~MpiWire() override {
    leave();
    const auto end = std::chrono::steady_clock::now() + (lost() ? std::chrono::seconds{0} : patience);
    for (drain(); !settle(); drain()) {
      if (std::chrono::steady_clock::now() > end) break;
      sched_yield();
    }
    // MPI may still read what it could not send: that memory is given up, and the communicator with it.
    for (auto& entry : lingering_) static_cast<void>(entry.memory.release());
    if (lingering_.empty() && !lost()) api.free_quietly(comm);
  }

  // Tags count the channels between two ranks. Where they start again from 0, the earlier channel is long closed.
  [[nodiscard]] int tag(const ChannelShape& shape) const noexcept { return static_cast<int>(shape.id % tags_); }

  void linger(RingMemory memory, std::vector<Request> requests) {
    const std::lock_guard guard(mutex_);
    lingering_.push_back({std::move(memory), std::move(requests)});
  }

  // Looks after what lingers. True when nothing does.
  bool settle() noexcept {
    const std::lock_guard guard(mutex_);
    std::erase_if(lingering_, [this](Lingering& entry) {
      std::erase_if(entry.requests, [this](Request& request) { return over(request); });
      return entry.requests.empty();
    });
    return lingering_.empty();
  }

  // A channel is opened whose messages have up to so many bytes.
  void expect(std::int64_t bytes) {
    longest_ = std::max(longest_, bytes);
    join();
  }

  // A probe that finds nothing makes the library go on with everything that is under way, on every communicator. One
  // that finds something need not, so this one asks for what nobody sends.
  void drive() noexcept override {
    if (!api.library.running() || !(api.any_thread() || std::this_thread::get_id() == opener_)) return;
    try {
      int found = 0;
      api.call("MPI_Iprobe", api.iprobe, rank_, static_cast<int>(tags_), comm, &found, Abi::status_ignore());
    } catch (const Error&) {
      return;
    }
  }

  // MPI has reported that a rank has ended: requests may have failed, and there is no way to call them off.
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
  // Receives what came for channels that were closed: then its sender is rid of it, and a library that cannot give back
  // a communicator with unread messages (MPICH 5) has none.
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
      return;  // then they stay where they are
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
  // Calls MPI. If it reports that a rank has ended, that is the one at the other end; those who wait for this rank
  // learn it, too.
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
  // Uses after `first` up to `last` are still with MPI: their memory must stay.
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
    progress();  // short messages are gone at once, and then the next put() finds its slot free
  }
  void released(std::uint64_t) override {}

  void progress() override {
    const std::uint64_t before = sent_;
    this->with_peer(this->shape().to, [&] {
      while (sent_ < given_ && this->wire_->api.done(this->request(sent_ + 1))) ++sent_;
    });
    if (sent_ != before) released_word.store(sent_, std::memory_order_release);
  }

  // The other end, where it is this rank's own, shows whether anything can still come of waiting.
  bool self_deadlock() override {
    const auto receiver = other.lock();
    return receiver != nullptr && receiver->offered() <= sent_;
  }
  [[nodiscard]] std::uint64_t given() const noexcept { return given_; }

  std::weak_ptr<MpiReceiveEnd<Abi>> other;
  std::atomic<std::uint64_t> released_word{0};

 private:
  std::uint64_t given_ = 0;  // uses given to MPI
  std::uint64_t sent_ = 0;   // uses whose memory it has given back
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
        continue;  // then it lingers like a message that is just arriving
      }
    }
    // A message that is just arriving cannot be cancelled.
    const auto end = std::chrono::steady_clock::now() +
                     (this->wire_->lost() ? std::chrono::milliseconds{0} : patience_with_cancelled);
    for (std::uint64_t use = arrived_ + 1; use <= offered_; ++use) {
      while (!this->wire_->over(this->request(use)) && std::chrono::steady_clock::now() < end) sched_yield();
    }
    this->leave_behind(arrived_, offered_);
  }

  void offer_all() {
    while (offered_ < this->ring_.slots) offer(offered_ + 1);
  }

  void published(std::uint64_t, std::uint64_t, std::int64_t) override {}
  // The slot of this use is free for the use that comes next there.
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
          throw BadInput("a slot of " + std::to_string(shape.slot_bytes) + " bytes; over MPI at most " +
                         std::to_string(largest_slot));
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
