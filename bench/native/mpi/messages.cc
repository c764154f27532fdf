// Plain MPI: messages between two ranks.
#include <algorithm>
#include <optional>

#include "bench/native/mpi/peers.h"
#include "bench/native/mpi/window.h"
#include "measure/mpi/context.h"

namespace onehop::bench {
namespace {

// The sources and results of a candidate: consecutive messages, each at a multiple of 64 bytes.
template <class Abi>
class MpiMessages : public MessagePeer {
 public:
  MpiMessages(const MpiApi<Abi>& api, std::string name) : context_(api), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  std::span<std::byte> source(int message) override {
    return {source_.data() + place(message), static_cast<std::size_t>(bytes_)};
  }
  std::span<const std::byte> result(int message) const override {
    return {result_.data() + place(message), static_cast<std::size_t>(bytes_)};
  }
  void prepare(std::int64_t bytes, int messages) override {
    bytes_ = bytes;
    messages_ = messages;
    source_ = Buffer(place(messages));
    result_ = Buffer(place(messages));
  }

 protected:
  [[nodiscard]] std::int64_t place(int message) const { return (bytes_ + 63) / 64 * 64 * message; }
  [[nodiscard]] int count() const { return static_cast<int>(bytes_); }

  MpiContext<Abi> context_;
  std::string name_;
  std::int64_t bytes_ = 0;
  int messages_ = 0;
  Buffer source_;
  Buffer result_;
};

// Back and forth only.
template <class Abi>
class SendRecv final : public MpiMessages<Abi> {
 public:
  explicit SendRecv(const MpiApi<Abi>& api) : MpiMessages<Abi>(api, "Send/Recv") {}
  void send() override {
    const auto& c = this->context_;
    c.check(c.mpi.send(this->source_.data(), this->count(), c.byte, c.peer, 0, c.comm), "MPI_Send");
  }
  void receive() override {
    const auto& c = this->context_;
    c.check(c.mpi.recv(this->result_.data(), this->count(), c.byte, c.peer, 0, c.comm, c.ignore()), "MPI_Recv");
  }
};

// Posts the receives of the answer before it sends. The first half of the requests are receives.
template <class Abi>
class Requests : public MpiMessages<Abi> {
 public:
  Requests(const MpiApi<Abi>& api, std::string name)
      : MpiMessages<Abi>(api, std::move(name)), requests_(this->context_) {}
  void prepare(std::int64_t bytes, int messages) override {
    MpiMessages<Abi>::prepare(bytes, messages);
    requests_.list.assign(2 * static_cast<std::size_t>(messages), this->context_.api.handles.request_null);
  }
  void receive() override {
    post();
    requests_.wait_all();
    posted_ = false;
  }

 protected:
  virtual void start_receives() = 0;
  void post() {
    if (!std::exchange(posted_, true)) start_receives();
  }
  // The rank that sent last has receives posted for messages that will not come.
  void withdraw() noexcept {
    const auto& c = this->context_;
    if (c.running() && !requests_.list.empty()) {
      for (int m = 0; posted_ && m < this->messages_; ++m) static_cast<void>(c.api.cancel(requests_.data() + m));
      static_cast<void>(c.mpi.waitall(2 * this->messages_, requests_.data(), c.ignore()));
    }
    posted_ = false;
    requests_.clear();
  }
  MpiRequests<Abi> requests_;
  bool posted_ = false;
};

template <class Abi>
class Nonblocking final : public Requests<Abi> {
 public:
  explicit Nonblocking(const MpiApi<Abi>& api) : Requests<Abi>(api, "Isend/Irecv") {}
  ~Nonblocking() override { this->withdraw(); }
  void prepare(std::int64_t bytes, int messages) override {
    this->withdraw();
    Requests<Abi>::prepare(bytes, messages);
  }
  void send() override {
    const auto& c = this->context_;
    this->post();
    auto* request = this->requests_.data() + this->messages_;
    for (int m = 0; m < this->messages_; ++m) {
      c.check(c.api.isend(this->source_.data() + this->place(m), this->count(), c.byte, c.peer, m, c.comm, request++),
              "MPI_Isend");
    }
  }

 private:
  void start_receives() override {
    const auto& c = this->context_;
    auto* request = this->requests_.data();
    for (int m = 0; m < this->messages_; ++m) {
      c.check(c.api.irecv(this->result_.data() + this->place(m), this->count(), c.byte, c.peer, m, c.comm, request++),
              "MPI_Irecv");
    }
  }
};

template <class Abi>
class Persistent final : public Requests<Abi> {
 public:
  explicit Persistent(const MpiApi<Abi>& api) : Requests<Abi>(api, "persistent") {}
  ~Persistent() override { this->withdraw(); }
  void prepare(std::int64_t bytes, int messages) override {
    const auto& c = this->context_;
    this->withdraw();
    Requests<Abi>::prepare(bytes, messages);
    auto* request = this->requests_.data();
    for (int m = 0; m < messages; ++m) {
      c.check(
          c.mpi.recv_init(this->result_.data() + this->place(m), this->count(), c.byte, c.peer, m, c.comm, request + m),
          "MPI_Recv_init");
      c.check(c.mpi.send_init(this->source_.data() + this->place(m), this->count(), c.byte, c.peer, m, c.comm,
                              request + messages + m),
              "MPI_Send_init");
    }
  }
  void send() override {
    if (std::exchange(this->posted_, true)) {
      start(this->messages_, this->messages_);
    } else {
      start(0, 2 * this->messages_);
    }
  }

 private:
  void start_receives() override { start(0, this->messages_); }
  void start(int first, int count) {
    const auto& c = this->context_;
    c.check(c.mpi.startall(count, this->requests_.data() + first), "MPI_Startall");
  }
};

// Both directions at once: a graph with one edge per message, all to the same neighbour.
template <class Abi>
class NeighbourCollective final : public MpiMessages<Abi> {
 public:
  explicit NeighbourCollective(const MpiApi<Abi>& api) : MpiMessages<Abi>(api, "Neighbor_alltoallw") {}
  ~NeighbourCollective() override { clear(); }
  void prepare(std::int64_t bytes, int messages) override {
    const auto& c = this->context_;
    clear();
    MpiMessages<Abi>::prepare(bytes, messages);
    const auto edges = static_cast<std::size_t>(messages);
    const std::vector<int> neighbours(edges, c.peer), weights(edges, 1);
    c.check(c.mpi.dist_graph_create_adjacent(c.comm, messages, neighbours.data(), weights.data(), messages,
                                             neighbours.data(), weights.data(), c.api.handles.info_null, 0,
                                             &graph_.emplace()),
            "MPI_Dist_graph_create_adjacent");
    counts_.assign(edges, this->count());
    types_.assign(edges, c.byte);
    places_.clear();
    for (int m = 0; m < messages; ++m) places_.push_back(static_cast<std::intptr_t>(this->place(m)));
  }
  void send() override {}
  void receive() override {
    const auto& c = this->context_;
    c.check(c.mpi.neighbor_alltoallw(this->source_.data(), counts_.data(), places_.data(), types_.data(),
                                     this->result_.data(), counts_.data(), places_.data(), types_.data(), *graph_),
            "MPI_Neighbor_alltoallw");
  }

 private:
  void clear() noexcept {
    if (graph_) this->context_.api.free_quietly(*graph_);
    graph_.reset();
  }
  std::optional<typename Abi::Comm> graph_;
  std::vector<int> counts_;
  std::vector<typename Abi::Datatype> types_;
  std::vector<std::intptr_t> places_;
};

// Puts all messages, with one flush and one flag. In both directions at once, the two halves of the window are used in
// turn, so that the peer may put the messages of the next exchange while those of the last one are read.
template <class Abi>
class Put final : public MpiMessages<Abi> {
 public:
  Put(const MpiApi<Abi>& api, WindowKind kind, std::string name, int halves)
      : MpiMessages<Abi>(api, std::move(name)), kind_(kind), halves_(halves) {}
  void prepare(std::int64_t bytes, int messages) override {
    MpiMessages<Abi>::prepare(bytes, messages);
    window_.reset();
    window_.emplace(this->context_, kind_, halves_ * this->place(messages));
    half_ = 0;
  }
  void send() override {
    half_ = (half_ + 1) % halves_;
    if (this->bytes_ != 0) {
      for (int m = 0; m < this->messages_; ++m) {
        window_->put(this->source_.data() + this->place(m), this->bytes_, begin() + this->place(m));
      }
      window_->flush();
    }
    window_->raise_flag();
  }
  void receive() override { window_->await_flag(); }
  std::span<const std::byte> result(int message) const override {
    return {window_->data() + begin() + this->place(message), static_cast<std::size_t>(this->bytes_)};
  }

 private:
  [[nodiscard]] std::int64_t begin() const { return half_ * this->place(this->messages_); }
  WindowKind kind_;
  int halves_;
  std::optional<MpiWindow<Abi>> window_;
  int half_ = 0;
};

std::vector<std::unique_ptr<MessagePeer>> message_peers(const Group& group, bool both_ways) {
  return mpi_peers_of_two<MessagePeer>(group, [&]<class Abi>(const MpiApi<Abi>& api, auto& peers) {
    if (both_ways) {
      peers.push_back(std::make_unique<NeighbourCollective<Abi>>(api));
    } else {
      peers.push_back(std::make_unique<SendRecv<Abi>>(api));
    }
    peers.push_back(std::make_unique<Nonblocking<Abi>>(api));
    peers.push_back(std::make_unique<Persistent<Abi>>(api));
    if (!windows_work(api)) return;
    const int halves = both_ways ? 2 : 1;
    const std::string name = "Put + flush + flag";
    peers.push_back(std::make_unique<Put<Abi>>(api, WindowKind::allocated, name, halves));
    if (!group.shares_memory(1 - group.rank())) return;
    peers.push_back(std::make_unique<Put<Abi>>(api, WindowKind::shared, name + " (shared window)", halves));
  });
}

}  // namespace

std::vector<std::unique_ptr<MessagePeer>> mpi_to_and_fro_peers(const Group& group) {
  return message_peers(group, false);
}
std::vector<std::unique_ptr<MessagePeer>> mpi_both_ways_peers(const Group& group) { return message_peers(group, true); }

}  // namespace onehop::bench
