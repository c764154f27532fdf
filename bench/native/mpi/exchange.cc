// Plain MPI: several messages in both directions at once.
#include <optional>

#include "bench/native/mpi/peers.h"
#include "bench/native/mpi/window.h"
#include "measure/mpi/context.h"

namespace onehop::bench {
namespace {

// The sources and results of a candidate: consecutive messages, each at a multiple of 64 bytes.
template <class Abi>
class MpiExchange : public ExchangePeer {
 public:
  MpiExchange(const MpiApi<Abi>& api, std::string name) : context_(api), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  std::span<std::byte> source(int message) override {
    return {source_.data() + place(message), static_cast<std::size_t>(bytes_)};
  }
  std::span<const std::byte> result(int message) const override {
    return {result_.data() + place(message), static_cast<std::size_t>(bytes_)};
  }

 protected:
  void allocate(std::int64_t bytes, int messages) {
    bytes_ = bytes;
    messages_ = messages;
    source_ = Buffer(place(messages));
    result_ = Buffer(place(messages));
  }
  [[nodiscard]] std::int64_t place(int message) const { return (bytes_ + 63) / 64 * 64 * message; }
  [[nodiscard]] int count() const { return static_cast<int>(bytes_); }

  MpiContext<Abi> context_;
  std::string name_;
  std::int64_t bytes_ = 0;
  int messages_ = 0;
  Buffer source_;
  Buffer result_;
};

template <class Abi>
class Nonblocking final : public MpiExchange<Abi> {
 public:
  explicit Nonblocking(const MpiApi<Abi>& api) : MpiExchange<Abi>(api, "Isend/Irecv"), requests_(this->context_) {}
  void prepare(std::int64_t bytes, int messages) override {
    this->allocate(bytes, messages);
    requests_.list.assign(static_cast<std::size_t>(messages) * 2, this->context_.api.handles.request_null);
  }
  void exchange() override {
    const auto& c = this->context_;
    auto* request = requests_.data();
    for (int m = 0; m < this->messages_; ++m) {
      c.check(c.api.irecv(this->result_.data() + this->place(m), this->count(), c.byte, c.peer, m, c.comm, request++),
              "MPI_Irecv");
    }
    for (int m = 0; m < this->messages_; ++m) {
      c.check(c.api.isend(this->source_.data() + this->place(m), this->count(), c.byte, c.peer, m, c.comm, request++),
              "MPI_Isend");
    }
    requests_.wait_all();
  }

 private:
  MpiRequests<Abi> requests_;
};

template <class Abi>
class Persistent final : public MpiExchange<Abi> {
 public:
  explicit Persistent(const MpiApi<Abi>& api) : MpiExchange<Abi>(api, "persistent"), requests_(this->context_) {}
  void prepare(std::int64_t bytes, int messages) override {
    const auto& c = this->context_;
    requests_.clear();
    this->allocate(bytes, messages);
    for (int m = 0; m < messages; ++m) {
      c.check(c.mpi.recv_init(this->result_.data() + this->place(m), this->count(), c.byte, c.peer, m, c.comm,
                              requests_.add()),
              "MPI_Recv_init");
    }
    for (int m = 0; m < messages; ++m) {
      c.check(c.mpi.send_init(this->source_.data() + this->place(m), this->count(), c.byte, c.peer, m, c.comm,
                              requests_.add()),
              "MPI_Send_init");
    }
  }
  void exchange() override {
    requests_.start_all();
    requests_.wait_all();
  }

 private:
  MpiRequests<Abi> requests_;
};

// A graph with one edge per message, all to the same neighbour.
template <class Abi>
class NeighbourCollective final : public MpiExchange<Abi> {
 public:
  NeighbourCollective(const MpiApi<Abi>& api, bool persistent)
      : MpiExchange<Abi>(api, persistent ? "Neighbor_alltoallw, persistent" : "Neighbor_alltoallw"),
        requests_(this->context_),
        persistent_(persistent) {}
  ~NeighbourCollective() override { clear(); }

  void prepare(std::int64_t bytes, int messages) override {
    const auto& c = this->context_;
    clear();
    this->allocate(bytes, messages);
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
    if (persistent_) {
      c.check(c.mpi.neighbor_alltoallw_init(this->source_.data(), counts_.data(), places_.data(), types_.data(),
                                            this->result_.data(), counts_.data(), places_.data(), types_.data(),
                                            *graph_, c.api.handles.info_null, requests_.add()),
              "MPI_Neighbor_alltoallw_init");
    }
  }
  void exchange() override {
    const auto& c = this->context_;
    if (persistent_) {
      c.check(c.mpi.start(requests_.data()), "MPI_Start");
      requests_.wait_all();
    } else {
      c.check(c.mpi.neighbor_alltoallw(this->source_.data(), counts_.data(), places_.data(), types_.data(),
                                       this->result_.data(), counts_.data(), places_.data(), types_.data(), *graph_),
              "MPI_Neighbor_alltoallw");
    }
  }

 private:
  void clear() noexcept {
    requests_.clear();
    if (graph_) this->context_.api.free_quietly(*graph_);
    graph_.reset();
  }
  MpiRequests<Abi> requests_;
  bool persistent_;
  std::optional<typename Abi::Comm> graph_;
  std::vector<int> counts_;
  std::vector<typename Abi::Datatype> types_;
  std::vector<std::intptr_t> places_;
};

// Puts all messages, with one flush and one flag. The two halves of the window are used in turn, so that the peer may
// put the messages of the next exchange while those of the last one are read.
template <class Abi>
class Put final : public MpiExchange<Abi> {
 public:
  Put(const MpiApi<Abi>& api, WindowKind kind, std::string name)
      : MpiExchange<Abi>(api, std::move(name)), kind_(kind) {}
  void prepare(std::int64_t bytes, int messages) override {
    this->allocate(bytes, messages);
    window_.reset();
    window_.emplace(this->context_, kind_, 2 * this->place(messages));
    half_ = 0;
  }
  void exchange() override {
    half_ = 1 - half_;
    if (this->bytes_ != 0) {
      for (int m = 0; m < this->messages_; ++m) {
        window_->put(this->source_.data() + this->place(m), this->bytes_, begin() + this->place(m));
      }
      window_->flush();
    }
    window_->raise_flag();
    window_->await_flag();
  }
  std::span<const std::byte> result(int message) const override {
    return {window_->data() + begin() + this->place(message), static_cast<std::size_t>(this->bytes_)};
  }

 private:
  [[nodiscard]] std::int64_t begin() const { return half_ * this->place(this->messages_); }
  WindowKind kind_;
  std::optional<MpiWindow<Abi>> window_;
  int half_ = 0;
};

template <class Abi>
void add_all(const MpiApi<Abi>& api, bool shared, std::vector<std::unique_ptr<ExchangePeer>>& peers) {
  peers.push_back(std::make_unique<Nonblocking<Abi>>(api));
  peers.push_back(std::make_unique<Persistent<Abi>>(api));
  peers.push_back(std::make_unique<NeighbourCollective<Abi>>(api, false));
  if (MpiCalls<Abi>(api.library).neighbor_alltoallw_init != nullptr) {
    peers.push_back(std::make_unique<NeighbourCollective<Abi>>(api, true));
  }
  add_for_each_window<Put>(api, shared, peers);
}

}  // namespace

std::vector<std::unique_ptr<ExchangePeer>> mpi_exchange_peers(const Group& group) {
  return mpi_peers_of_two<ExchangePeer>(
      group, [&](const auto& api, auto& peers) { add_all(api, group.shares_memory(1 - group.rank()), peers); });
}

}  // namespace onehop::bench
