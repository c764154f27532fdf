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
    for (Message& m : receives_) {
      auto* request = receiving_.add();
      if (!persistent_) continue;
      c.check(c.mpi.recv_init(m.buffer.data(), m.count(), c.byte, m.peer, m.tag, c.comm, request), "MPI_Recv_init");
    }
    for (Message& m : sends_) {
      auto* request = sending_.add();
      if (!persistent_) continue;
      c.check(c.mpi.send_init(m.buffer.data(), m.count(), c.byte, m.peer, m.tag, c.comm, request), "MPI_Send_init");
    }
  }

  void start() override {
    const auto& c = this->context_;
    if (persistent_ && !receives_.empty()) receiving_.start_all();
    auto* request = receiving_.data();
    for (const Message& m : receives_) {
      if (persistent_) break;
      c.check(c.api.irecv(m.buffer.data(), m.count(), c.byte, m.peer, m.tag, c.comm, request++), "MPI_Irecv");
    }
    request = sending_.data();
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

template <class Abi>
void add_packed_halos(const MpiApi<Abi>& api, std::vector<std::unique_ptr<HaloPeer>>& peers) {
  peers.push_back(std::make_unique<Packed<Abi>>(api, "packed, Isend/Irecv", false, false));
  peers.push_back(std::make_unique<Packed<Abi>>(api, "packed, persistent", false, true));
  peers.push_back(std::make_unique<Packed<Abi>>(api, "packed, one message a neighbour, Isend/Irecv", true, false));
  peers.push_back(std::make_unique<Packed<Abi>>(api, "packed, one message a neighbour, persistent", true, true));
}

template void add_packed_halos(const MpiApi<detail::OpenMpiAbi>&, std::vector<std::unique_ptr<HaloPeer>>&);
template void add_packed_halos(const MpiApi<detail::MpichAbi>&, std::vector<std::unique_ptr<HaloPeer>>&);
template void add_packed_halos(const MpiApi<detail::StandardAbi>&, std::vector<std::unique_ptr<HaloPeer>>&);

}  // namespace onehop::measure
