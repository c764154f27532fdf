// Channels over MPI: two-sided messages, each of which implies its flag. Both ends keep slots in their own memory. The
// bell is always set, so every flag calls this transport: it sends a complete fragment, stores the flag in the
// receiver's slot on arrival, and posts a released slot to MPI as the next receive.
//
// A fragment travels in one message, or, if slots are longer than `part_bytes`, in parts of at most that length: MPI
// libraries send a longer message only after a handshake, which waits behind the data under way. The first part begins
// with the length of the fragment, and the receiver posts the receives of the other parts when it has arrived. Since
// short messages no longer wait at their sender, the receiver of such a channel says which slots it has released.
// Without parts, a slot that has been sent is free.
#include "src/mpi/mpi_transport.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/group/agreement.h"
#include "src/group/group_state.h"
#include "src/mpi/mpi_end.h"

namespace onehop::detail {
namespace {

// A bell that is always set.
constinit std::atomic<std::uint32_t> always_up{1};

constexpr std::int64_t largest_slot = std::int64_t{1} << 30;  // MPI counts in int

template <class Abi>
class MpiReceiveEnd;

template <class Abi>
class MpiSendEnd final : public MpiEnd<Abi> {
 public:
  using Base = MpiEnd<Abi>;
  using Tag = typename Base::Tag;
  MpiSendEnd(std::shared_ptr<GroupState> group, const ChannelShape& shape, std::shared_ptr<MpiWire<Abi>> wire)
      : Base(std::move(group), shape, std::move(wire), shape.to) {}
  ~MpiSendEnd() override {
    if (!this->may_clean_up()) return;
    this->cancel(this->releases_);
    this->leave_behind();
  }

  void begin() {
    for (auto& release : this->releases_) this->receive(nullptr, 0, Tag::released, release);
  }

  void published(std::uint64_t use, std::uint64_t chunks, std::int64_t bytes) override {
    if (chunks != whole) return;  // a message is sent when it is complete
    const std::int64_t length = this->cut_ ? part_length(bytes) : bytes;
    if (this->cut_) std::memcpy(this->message(use), &bytes, sizeof(Length));
    std::int64_t at = std::min(bytes, length);
    this->send(this->message(use), this->payload(use) - this->message(use) + at, Tag::first, this->request(use));
    for (std::size_t part = 1; at < bytes; at += length, ++part) {
      this->send(this->payload(use) + at, std::min(length, bytes - at), Tag::rest, this->request(use, part));
    }
    given_ = use;
    progress();  // short messages complete at once, so the next put() finds its slot free
  }
  void released(std::uint64_t) override {}

  void progress() override {
    const std::uint64_t before = free_;
    while (sent_ < given_ && is_sent(sent_ + 1)) ++sent_;
    while (this->cut_ && returned_ < given_) {
      auto& release = this->releases_[this->index(returned_ + 1)];
      if (!this->done(release)) break;
      ++returned_;
      this->receive(nullptr, 0, Tag::released, release);
    }
    free_ = this->cut_ ? std::min(sent_, returned_) : sent_;
    if (free_ != before) released_word.store(free_, std::memory_order_release);
  }

  // On a channel of this rank to itself, the other end shows whether the wait can still succeed.
  bool self_deadlock() override {
    const auto receiver = other.lock();
    if (receiver == nullptr) return false;
    receiver->offer_free();
    return receiver->offered() <= free_ + (this->cut_ ? this->ring_.slots : 0);
  }
  [[nodiscard]] std::uint64_t given() const noexcept { return given_; }

  std::weak_ptr<MpiReceiveEnd<Abi>> other;
  std::atomic<std::uint64_t> released_word{0};

 private:
  // Tests the parts in their order, and never again those that are complete.
  [[nodiscard]] bool is_sent(std::uint64_t use) {
    while (part_ < this->per_slot_ && this->done(this->request(use, part_))) ++part_;
    if (part_ < this->per_slot_) return false;
    part_ = 0;
    return true;
  }

  std::uint64_t given_ = 0;     // uses passed to MPI
  std::uint64_t sent_ = 0;      // uses that MPI has completed
  std::uint64_t returned_ = 0;  // uses that the receiver has released; of fragments in parts
  std::uint64_t free_ = 0;      // uses whose slots are free again
  std::size_t part_ = 0;        // parts of use sent_ + 1 that MPI has completed
};

template <class Abi>
class MpiReceiveEnd final : public MpiEnd<Abi> {
 public:
  using Base = MpiEnd<Abi>;
  using Tag = typename Base::Tag;
  MpiReceiveEnd(std::shared_ptr<GroupState> group, const ChannelShape& shape, std::shared_ptr<MpiWire<Abi>> wire)
      : Base(std::move(group), shape, std::move(wire), shape.from), lengths_(static_cast<std::size_t>(shape.slots)) {}
  ~MpiReceiveEnd() override {
    if (!this->may_clean_up()) return;
    if (arrived_ != offered_) this->cancel(this->requests_);
    this->leave_behind();
  }

  void begin() {
    free_ = this->ring_.slots;
    offer_free();
  }

  void published(std::uint64_t, std::uint64_t, std::int64_t) override {}
  // The slot of this use is free for its next use. Unless it is needed for the next message, progress() posts it, since
  // the program may be about to answer the message that it has just read.
  void released(std::uint64_t use) override {
    free_ = use + this->ring_.slots;
    if (this->cut_ || offered_ == arrived_) offer_free();
    if (!this->cut_) return;
    auto& release = this->releases_[this->index(use)];
    while (!this->done(release)) sched_yield();  // an empty message is sent at once, and this one S uses ago
    this->send(nullptr, 0, Tag::released, release);
  }

  // Fragments arrive in order. Each test of a message that has not arrived makes the library look for messages, which
  // over TCP is a call of the system: so this ends when a fragment is complete.
  void progress() override {
    offer_free();
    if (begun_ == arrived_ && begun_ < offered_ && this->done(this->request(begun_ + 1))) receive_rest(++begun_);
    if (arrived_ < begun_ && complete(arrived_ + 1)) ++arrived_;
  }

  bool self_deadlock() override {
    const auto sender = other.lock();
    return sender != nullptr && sender->given() <= arrived_;
  }
  void offer_free() {
    while (offered_ < free_) offer(offered_ + 1);
  }
  [[nodiscard]] std::uint64_t offered() const noexcept { return offered_; }

  std::weak_ptr<MpiSendEnd<Abi>> other;
  std::atomic<std::uint64_t> released_word{0};

 private:
  void offer(std::uint64_t use) {
    const std::int64_t before = this->payload(use) - this->message(use);
    const std::int64_t bytes = this->cut_ ? part_bytes : this->ring_.slot_bytes;
    this->receive(this->message(use), before + bytes, Tag::first, this->request(use));
    offered_ = use;
  }

  // The first part of this use has arrived.
  void receive_rest(std::uint64_t use) {
    if (!this->cut_) return;
    std::int64_t& bytes = lengths_[this->index(use)];
    std::memcpy(&bytes, this->message(use), sizeof(Length));
    const std::int64_t length = part_length(bytes);
    std::size_t part = 1;
    for (std::int64_t at = length; at < bytes; at += length, ++part) {
      this->receive(this->payload(use) + at, std::min(length, bytes - at), Tag::rest, this->request(use, part));
    }
  }

  // Stores the flag for what has arrived of this use, and returns whether that is all of it.
  bool complete(std::uint64_t use) {
    const std::int64_t bytes = lengths_[this->index(use)];
    auto& flag = this->ring_.flag_at(this->slot(use));
    const std::int64_t length = part_length(bytes);
    std::int64_t at = static_cast<std::int64_t>(part_) * length;
    while (at < bytes && this->done(this->request(use, part_))) at = static_cast<std::int64_t>(++part_) * length;
    if (at < bytes) {
      const auto chunks = static_cast<std::uint64_t>(at / this->ring_.chunk_bytes);
      if (chunks > 0) flag.store(flag_value(use, std::min(chunks, whole - 1)), std::memory_order_release);
      return false;
    }
    part_ = 1;
    flag.store(flag_value(use, whole), std::memory_order_release);
    return true;
  }

  std::vector<std::int64_t> lengths_;  // of fragments in parts, by slot
  std::uint64_t free_ = 0;             // uses that may be offered
  std::uint64_t offered_ = 0;          // uses whose first receives are with MPI
  std::uint64_t begun_ = 0;            // uses whose first part has arrived
  std::uint64_t arrived_ = 0;
  std::size_t part_ = 1;  // parts of use arrived_ + 1 that have arrived
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
    const std::exception_ptr failure = failure_of([&] { make_ends(group, shapes, senders, receivers); });
    agree(*group, "opening channels over MPI", failure);
    set_numbers(*group, shapes, senders, receivers);
    Opened opened;
    for (auto& end : senders) {
      end->begin();
      opened.senders.push_back({end->ring(), &end->released_word, &always_up, end});
    }
    for (auto& end : receivers) {
      end->begin();
      opened.receivers.push_back({end->ring(), &end->released_word, &always_up, 0, end});
    }
    return opened;
  }

 private:
  using Senders = std::vector<std::shared_ptr<MpiSendEnd<Abi>>>;
  using Receivers = std::vector<std::shared_ptr<MpiReceiveEnd<Abi>>>;

  void make_ends(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes, Senders& senders,
                 Receivers& receivers) {
    for (const ChannelShape& shape : shapes) {
      if (shape.slot_bytes > largest_slot) {
        throw BadInput("expected slots of at most " + std::to_string(largest_slot) + " bytes over MPI, found " +
                       std::to_string(shape.slot_bytes) + ": ask for a smaller slot_bytes");
      }
      wire_->expect(shape.slot_bytes + static_cast<std::int64_t>(sizeof(Length)));
      if (shape.from == group->rank) senders.push_back(std::make_shared<MpiSendEnd<Abi>>(group, shape, wire_));
      if (shape.to == group->rank) receivers.push_back(std::make_shared<MpiReceiveEnd<Abi>>(group, shape, wire_));
      if (shape.from == shape.to) {
        senders.back()->other = receivers.back();
        receivers.back()->other = senders.back();
      }
    }
  }

  // Gives every channel tags that no other channel between its ranks has. If a number is in use on any rank, all ranks
  // try the following ones.
  void set_numbers(GroupState& group, std::span<const ChannelShape> shapes, Senders& senders, Receivers& receivers) {
    constexpr int tries = 1000;
    std::vector<int> numbers(shapes.size());
    for (int attempt = 0; attempt < tries; ++attempt) {
      bool clash = false;
      std::set<std::pair<int, int>> taken;  // by this call: peer and number
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        const int peer = shapes[i].from == group.rank ? shapes[i].to : shapes[i].from;
        numbers[i] = wire_->next_number(peer);
        clash = clash || wire_->in_use(peer, numbers[i]) || !taken.insert({peer, numbers[i]}).second;
      }
      const std::byte mine{clash};
      const Gathered all = group.allgather({&mine, 1});
      if (std::ranges::any_of(
              all, [](std::span<const std::byte> theirs) { return !theirs.empty() && theirs.front() != std::byte{0}; }))
        continue;
      auto sender = senders.begin();
      auto receiver = receivers.begin();
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        if (shapes[i].from == group.rank) (*sender++)->set_number(numbers[i]);
        if (shapes[i].to == group.rank) (*receiver++)->set_number(numbers[i]);
      }
      return;
    }
    throw Error(
        "MPI has too few tags for the channels that are open between two ranks; close some of them, or make "
        "another group");
  }

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
