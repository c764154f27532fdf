// Plain MPI: one message back and forth.
#include <algorithm>
#include <optional>

#include "bench/native/mpi/peers.h"
#include "bench/native/mpi/window.h"
#include "measure/mpi/context.h"

namespace onehop::bench {
namespace {

constexpr int tag = 1;

// The source and destination of a candidate.
template <class Abi>
class MpiOneWay : public OneWayPeer {
 public:
  MpiOneWay(const MpiApi<Abi>& api, std::string name) : context_(api), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  std::span<std::byte> source() override { return source_.bytes(); }

 protected:
  void allocate(std::int64_t bytes) {
    source_ = Buffer(bytes);
    result_ = Buffer(bytes);
  }
  [[nodiscard]] int count() const { return static_cast<int>(source_.bytes().size()); }

  MpiContext<Abi> context_;
  std::string name_;
  Buffer source_;
  Buffer result_;
};

template <class Abi>
class SendRecv final : public MpiOneWay<Abi> {
 public:
  explicit SendRecv(const MpiApi<Abi>& api) : MpiOneWay<Abi>(api, "Send/Recv") {}
  void prepare(std::int64_t bytes) override { this->allocate(bytes); }
  void send() override {
    const auto& c = this->context_;
    c.check(c.mpi.send(this->source_.data(), this->count(), c.byte, c.peer, tag, c.comm), "MPI_Send");
  }
  std::span<const std::byte> receive() override {
    const auto& c = this->context_;
    c.check(c.mpi.recv(this->result_.data(), this->count(), c.byte, c.peer, tag, c.comm, c.ignore()), "MPI_Recv");
    return this->result_.bytes();
  }
};

// Posts the receive of the answer before it sends the message.
template <class Abi>
class Nonblocking final : public MpiOneWay<Abi> {
 public:
  explicit Nonblocking(const MpiApi<Abi>& api) : MpiOneWay<Abi>(api, "Isend/Irecv") { reset(); }
  ~Nonblocking() override { withdraw(); }
  void prepare(std::int64_t bytes) override {
    withdraw();
    this->allocate(bytes);
  }
  void send() override {
    const auto& c = this->context_;
    post();
    c.check(c.api.isend(this->source_.data(), this->count(), c.byte, c.peer, tag, c.comm, &requests_[1]), "MPI_Isend");
  }
  std::span<const std::byte> receive() override {
    const auto& c = this->context_;
    post();
    c.check(c.mpi.waitall(2, requests_, c.ignore()), "MPI_Waitall");
    posted_ = false;
    return this->result_.bytes();
  }

 private:
  void reset() { requests_[0] = requests_[1] = this->context_.api.handles.request_null; }
  void post() {
    if (posted_) return;
    const auto& c = this->context_;
    c.check(c.api.irecv(this->result_.data(), this->count(), c.byte, c.peer, tag, c.comm, &requests_[0]), "MPI_Irecv");
    posted_ = true;
  }
  // The rank that sent last has a receive posted for a message that will not come.
  void withdraw() noexcept {
    const auto& c = this->context_;
    if (c.running() && posted_) static_cast<void>(c.api.cancel(&requests_[0]));
    if (c.running()) static_cast<void>(c.mpi.waitall(2, requests_, c.ignore()));
    posted_ = false;
    reset();
  }

  typename Abi::Request requests_[2];
  bool posted_ = false;
};

template <class Abi>
class Persistent final : public MpiOneWay<Abi> {
 public:
  explicit Persistent(const MpiApi<Abi>& api) : MpiOneWay<Abi>(api, "persistent"), requests_(this->context_) {}
  ~Persistent() override { withdraw(); }
  void prepare(std::int64_t bytes) override {
    const auto& c = this->context_;
    withdraw();
    this->allocate(bytes);
    requests_.list.assign(2, c.api.handles.request_null);
    c.check(c.mpi.recv_init(this->result_.data(), this->count(), c.byte, c.peer, tag, c.comm, &requests_.list[0]),
            "MPI_Recv_init");
    c.check(c.mpi.send_init(this->source_.data(), this->count(), c.byte, c.peer, tag, c.comm, &requests_.list[1]),
            "MPI_Send_init");
  }
  void send() override {
    const auto& c = this->context_;
    if (posted_) {
      c.check(c.mpi.start(&requests_.list[1]), "MPI_Start");
    } else {
      requests_.start_all();
      posted_ = true;
    }
  }
  std::span<const std::byte> receive() override {
    const auto& c = this->context_;
    if (!posted_) c.check(c.mpi.start(&requests_.list[0]), "MPI_Start");
    requests_.wait_all();
    posted_ = false;
    return this->result_.bytes();
  }

 private:
  void withdraw() noexcept {
    const auto& c = this->context_;
    if (posted_ && c.running()) {
      static_cast<void>(c.api.cancel(&requests_.list[0]));
      static_cast<void>(c.mpi.waitall(2, requests_.data(), c.ignore()));
    }
    posted_ = false;
    requests_.clear();
  }
  MpiRequests<Abi> requests_;
  bool posted_ = false;
};

template <class Abi>
class Put final : public MpiOneWay<Abi> {
 public:
  Put(const MpiApi<Abi>& api, WindowKind kind, std::string name) : MpiOneWay<Abi>(api, std::move(name)), kind_(kind) {}
  void prepare(std::int64_t bytes) override {
    this->source_ = Buffer(bytes);
    window_.reset();
    window_.emplace(this->context_, kind_, bytes);
  }
  void send() override {
    if (this->count() != 0) {
      window_->put(this->source_.data(), this->count(), 0);
      window_->flush();
    }
    window_->raise_flag();
  }
  std::span<const std::byte> receive() override {
    window_->await_flag();
    return {window_->data(), static_cast<std::size_t>(this->count())};
  }

 private:
  WindowKind kind_;
  std::optional<MpiWindow<Abi>> window_;
};

template <class Abi>
void add_all(const MpiApi<Abi>& api, bool shared, std::vector<std::unique_ptr<OneWayPeer>>& peers) {
  peers.push_back(std::make_unique<SendRecv<Abi>>(api));
  peers.push_back(std::make_unique<Nonblocking<Abi>>(api));
  peers.push_back(std::make_unique<Persistent<Abi>>(api));
  add_for_each_window<Put>(api, shared, peers);
}

}  // namespace

std::vector<std::unique_ptr<OneWayPeer>> mpi_one_way_peers(const Group& group) {
  return mpi_peers_of_two<OneWayPeer>(
      group, [&](const auto& api, auto& peers) { add_all(api, group.shares_memory(1 - group.rank()), peers); });
}

}  // namespace onehop::bench
