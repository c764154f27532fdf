// The communicator, the tags, and messages whose channels are closed: all channels of a group over MPI share them.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/group.h"
#include "src/base/clock.h"
#include "src/base/env.h"
#include "src/channel/transport/transport.h"
#include "src/group/driven.h"
#include "src/group/group_state.h"
#include "src/mpi/api.h"

namespace onehop::detail {

// Tags of a channel: the first part of a fragment, its other parts, and slots that are free again (which go the other
// way). Channels of both directions between two ranks have numbers of one sequence.
constexpr int tags_per_channel = 3;
// How many seconds a group that closes waits for messages that have not been received yet.
constexpr double drain_limit = 2;

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
    largest_tag_ = found != 0 ? *value : least;
    if (const auto tags = env::number("ONEHOP_TEST_MPI_TAGS"))
      largest_tag_ = static_cast<int>(std::min<double>(largest_tag_, *tags));
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

  // The number of the next channel between this rank and a peer, which gives its tags. Both ranks open the same
  // channels in the same order, so both count alike. After the last number they start again from 0; then a number may
  // be in use.
  [[nodiscard]] int next_number(int peer) {
    const std::lock_guard guard(mutex_);
    return static_cast<int>(numbers_[peer].next++ % static_cast<std::uint64_t>(largest_tag_ / tags_per_channel));
  }
  [[nodiscard]] bool in_use(int peer, int number) {
    const std::lock_guard guard(mutex_);
    return numbers_[peer].live.contains(number);
  }
  // Takes the number for an end of a channel; give_back() when the end is closed.
  void take(int peer, int number) {
    const std::lock_guard guard(mutex_);
    ++numbers_[peer].live[number];
  }
  void give_back(int peer, int number) noexcept {
    const std::lock_guard guard(mutex_);
    auto& live = numbers_[peer].live;
    if (const auto found = live.find(number); found != live.end() && --found->second == 0) live.erase(found);
  }
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
      api.call("MPI_Iprobe", api.iprobe, rank_, largest_tag_, comm, &found, Abi::status_ignore());
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

  struct Numbers {
    std::uint64_t next = 0;
    std::map<int, int> live;  // with the number of ends on this rank: two where a rank sends to itself
  };
  int largest_tag_ = 0;
  std::map<int, Numbers> numbers_;  // by peer
  int rank_ = 0;
  std::thread::id opener_ = std::this_thread::get_id();
  std::int64_t longest_ = 0;
  mutable std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::vector<Lingering> lingering_;
};

}  // namespace onehop::detail
