// Plain MPI: a halo packed by hand.
#include <algorithm>

#include "measure/mpi/halo.h"

namespace onehop::measure {
namespace {

// Packs faces into buffers: one message per face, or one per neighbour.
template <class Abi>
class Packed final : public MpiHalo<Abi> {
 public:
  Packed(const MpiApi<Abi>& api, std::string name, bool merged, bool persistent)
      : MpiHalo<Abi>(api, std::move(name)),
        sending_(this->context_),
        receiving_(this->context_),
        merged_(merged),
        persistent_(persistent) {}

  void prepare_messages(const HaloWork& work, std::int64_t enlargement) override {
    const auto& c = this->context_;
    sending_.clear();
    receiving_.clear();
    sends_ = messages(work.sends, enlargement);
    receives_ = messages(work.receives, enlargement);
    receiving_.list.assign(receives_.size(), c.api.handles.request_null);
    sending_.list.assign(sends_.size(), c.api.handles.request_null);
    if (!persistent_) return;
    post(receives_, c.mpi.recv_init, receiving_, "MPI_Recv_init");
    post(sends_, c.mpi.send_init, sending_, "MPI_Send_init");
  }

  void start() override {
    const auto& c = this->context_;
    persistent_ ? receiving_.start_all() : post(receives_, c.api.irecv, receiving_, "MPI_Irecv");
    auto* request = sending_.data();
    for (const Message& m : sends_) {
      std::byte* at = m.buffer.data();
      for (const Part& part : m.parts) at = part.rows.pack(at, this->array(part.array));
      if (persistent_) {
        c.check(c.mpi.start(request++), "MPI_Start");
      } else {
        c.check(c.api.isend(m.buffer.data(), m.count(), c.byte, m.peer, m.tag, c.comm, request++), "MPI_Isend");
      }
    }
    this->copy_inside();
  }

  void finish() override {
    const auto& c = this->context_;
    auto* request = receiving_.data();
    for (const Message& m : receives_) {
      c.check(c.mpi.wait(request++, c.ignore()), "MPI_Wait");
      const std::byte* at = m.buffer.data();
      for (const Part& part : m.parts) at = part.rows.unpack(this->array(part.array), at);
    }
    sending_.wait_all();
  }

 private:
  struct Part {
    int array = 0;
    Rows rows;
  };
  struct Message {
    int peer = 0;
    int tag = 0;
    std::vector<Part> parts;
    std::int64_t bytes = 0;
    Buffer buffer;
    [[nodiscard]] int count() const { return static_cast<int>(bytes); }
  };

  template <class Call>
  void post(const std::vector<Message>& messages, const Call& call, MpiRequests<Abi>& requests,
            const char* what) const {
    const auto& c = this->context_;
    auto* request = requests.data();
    for (const Message& m : messages) {
      c.check(call(m.buffer.data(), m.count(), c.byte, m.peer, m.tag, c.comm, request++), what);
    }
  }

  [[nodiscard]] std::vector<Message> messages(const std::vector<HaloPiece>& pieces, std::int64_t enlargement) const {
    std::vector<Message> made;
    std::map<std::pair<int, int>, std::size_t> known;
    for (const HaloPiece& piece : pieces) {
      const int tag = merged_ ? 0 : piece.tag;
      const auto [at, is_new] = known.try_emplace({piece.peer, tag}, made.size());
      if (is_new) made.push_back({piece.peer, tag, {}, 0, {}});
      Message& message = made[at->second];
      message.parts.push_back({piece.array, Rows(piece.slice, piece.element_bytes)});
      message.bytes += message.parts.back().rows.bytes();
    }
    for (Message& message : made) {
      message.bytes *= enlargement;
      message.buffer = Buffer(message.bytes);
    }
    return made;
  }

  MpiRequests<Abi> sending_;
  MpiRequests<Abi> receiving_;
  bool merged_;
  bool persistent_;
  std::vector<Message> sends_;
  std::vector<Message> receives_;
};

}  // namespace

void add_packed_halos(const detail::AnyMpi& mpi, std::string_view prefix,
                      std::vector<std::unique_ptr<HaloPeer>>& peers) {
  for (const bool merged : {false, true}) {
    for (const bool persistent : {false, true}) {
      const std::string name = std::string("packed, ") + (merged ? "one message a neighbour, " : "") +
                               (persistent ? "persistent" : "Isend/Irecv");
      if (!name.starts_with(prefix)) continue;
      std::visit(
          [&]<class Abi>(const MpiApi<Abi>* api) {
            peers.push_back(std::make_unique<Packed<Abi>>(*api, name, merged, persistent));
          },
          mpi);
    }
  }
}

}  // namespace onehop::measure
