// Plain MPI: messages between two ranks.
#include "bench/native/mpi/peers.h"
#include "bench/native/mpi/window.h"
#include "measure/mpi/context.h"

namespace onehop::bench {
namespace {

// The sources of a candidate: consecutive messages, each at a multiple of 64 bytes.
template <class Abi>
class MpiMessages : public MessagePeer {
 public:
  MpiMessages(const MpiApi<Abi>& api, std::string name, std::int64_t bytes, int messages)
      : context_(api), name_(std::move(name)), bytes_(bytes), messages_(messages), source_(place(messages)) {}
  std::string_view name() const override { return name_; }
  std::span<std::byte> source(int message) override {
    return {source_.data() + place(message), static_cast<std::size_t>(bytes_)};
  }

 protected:
  [[nodiscard]] std::int64_t place(int message) const { return (bytes_ + 63) / 64 * 64 * message; }

  MpiContext<Abi> context_;
  std::string name_;
  std::int64_t bytes_;
  int messages_;
  Buffer source_;
};

// One message, back and forth, by blocking calls.
template <class Abi>
class SendRecv : public MpiMessages<Abi> {
 public:
  SendRecv(const MpiApi<Abi>& api, std::string name, std::int64_t bytes)
      : MpiMessages<Abi>(api, std::move(name), bytes, 1), result_(bytes) {}
  void send() override { post(this->context_.mpi.send, this->source_, "MPI_Send"); }
  void receive() override { post(this->context_.mpi.recv, result_, "MPI_Recv", this->context_.ignore()); }
  std::span<const std::byte> result(int) const override { return result_.bytes(); }

 protected:
  template <class Function, class... More>
  void post(const Function& function, const Buffer& buffer, const char* what, More... more) const {
    const auto& c = this->context_;
    c.check(function(buffer.data(), static_cast<int>(this->bytes_), c.byte, c.peer, 0, c.comm, more...), what);
  }
  Buffer result_;
};

// The same by calls that do not block. The rank that begins posts the receive of the answer behind its message, which
// travels meanwhile, and waits for both at once.
template <class Abi>
class Nonblocking final : public SendRecv<Abi> {
 public:
  Nonblocking(const MpiApi<Abi>& api, std::int64_t bytes, bool persistent)
      : SendRecv<Abi>(api, persistent ? "persistent" : "Isend/Irecv", bytes),
        requests_(this->context_),
        first_(this->context_.rank == 0),
        persistent_(persistent) {
    requests_.list.assign(2, this->context_.api.handles.request_null);
    if (!persistent) return;
    this->post(this->context_.mpi.send_init, this->source_, "MPI_Send_init", requests_.data());
    this->post(this->context_.mpi.recv_init, this->result_, "MPI_Recv_init", requests_.data() + 1);
  }
  void send() override {
    if (persistent_) {
      requests_.start(0, first_ ? 2 : 1);
    } else {
      this->post(this->context_.api.isend, this->source_, "MPI_Isend", requests_.data());
      if (first_) post_receive();
    }
    if (!first_) requests_.wait(0, 1);
  }
  void receive() override {
    if (first_) return requests_.wait(0, 2);
    persistent_ ? requests_.start(1, 1) : post_receive();
    requests_.wait(1, 1);
  }

 private:
  void post_receive() const { this->post(this->context_.api.irecv, this->result_, "MPI_Irecv", requests_.data() + 1); }
  MpiRequests<Abi> requests_;  // of the send and of the receive
  bool first_;
  bool persistent_;
};

// Puts all messages, with one flush and one flag. In both directions at once, the two halves of the window are used in
// turn, so that the peer may put the messages of the next exchange while those of the last one are read.
template <class Abi>
class Put final : public MpiMessages<Abi> {
 public:
  Put(const MpiApi<Abi>& api, std::string name, std::int64_t bytes, int messages, WindowKind kind, int halves)
      : MpiMessages<Abi>(api, std::move(name), bytes, messages),
        halves_(halves),
        window_(this->context_, kind, halves * this->place(messages)) {}
  void send() override {
    half_ = (half_ + 1) % halves_;
    if (this->bytes_ != 0) {
      for (int m = 0; m < this->messages_; ++m) {
        window_.put(this->source_.data() + this->place(m), this->bytes_, begin() + this->place(m));
      }
      window_.flush();
    }
    window_.raise_flag();
  }
  void receive() override { window_.await_flag(); }
  std::span<const std::byte> result(int message) const override {
    return {window_.data() + begin() + this->place(message), static_cast<std::size_t>(this->bytes_)};
  }

 private:
  [[nodiscard]] std::int64_t begin() const { return half_ * this->place(this->messages_); }
  int halves_;
  MpiWindow<Abi> window_;
  int half_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<MessagePeer>> mpi_message_peers(const Group& group, std::int64_t bytes, int messages,
                                                            bool both_ways) {
  using Peers = std::vector<std::unique_ptr<MessagePeer>>;
  return with_mpi<Peers>(group, [&]<class Abi>(const MpiApi<Abi>& api) {
    Peers peers;
    if (!both_ways) {
      peers.push_back(std::make_unique<SendRecv<Abi>>(api, "Send/Recv", bytes));
      for (const bool persistent : {false, true})
        peers.push_back(std::make_unique<Nonblocking<Abi>>(api, bytes, persistent));
    }
    if (!windows_work(api)) return peers;
    const auto add = [&](const std::string& name, WindowKind kind) {
      peers.push_back(std::make_unique<Put<Abi>>(api, name, bytes, messages, kind, both_ways ? 2 : 1));
    };
    add("Put + flush + flag", WindowKind::allocated);
    if (group.shares_memory(1 - group.rank())) add("Put + flush + flag (shared window)", WindowKind::shared);
    return peers;
  });
}

}  // namespace onehop::bench
