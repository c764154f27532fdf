// Plain MPI: a halo that is packed by hand, or described by derived datatypes.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "measure/mpi/context.h"
#include "measure/mpi/peers.h"
#include "measure/pack.h"

namespace onehop::measure {
namespace {

// One transfer as one rank sees it.
struct HaloPiece {
  int peer = 0;
  int tag = 0;  // number among the transfers between these two ranks, the same on both
  int array = 0;
  std::int64_t element_bytes = 8;
  Slice slice;
};
using HaloPieces = std::vector<HaloPiece>;

// The work of a rank in a schedule's first round. A copy inside the rank is from a piece to the one at the same place.
struct HaloWork {
  HaloPieces sends, receives, copied_from, copied_to;

  HaloWork(const Schedule& schedule, int rank) {
    if (schedule.rounds.empty()) return;
    std::map<std::pair<int, int>, int> tags;
    for (const Transfer& transfer : schedule.rounds.front().transfers) {
      const int tag = tags[{transfer.from.rank, transfer.to.rank}]++;
      const auto add = [&](HaloPieces& pieces, const Place& place, int peer) {
        pieces.push_back({peer, tag, place.array,
                          schedule.arrays.at(static_cast<std::size_t>(place.array)).element_bytes, place.slice});
      };
      const bool inside = transfer.from.rank == transfer.to.rank;
      if (transfer.from.rank == rank) add(inside ? copied_from : sends, transfer.from, transfer.to.rank);
      if (transfer.to.rank == rank) add(inside ? copied_to : receives, transfer.to, transfer.from.rank);
    }
  }
};

// Rows of one of the arrays.
struct Part {
  explicit Part(const HaloPiece& piece) : array(piece.array), rows(piece.slice, piece.element_bytes) {}
  int array;
  Rows rows;
};

// The base class of all candidates, which does the copies inside the rank, and starts messages.
template <class Abi>
class MpiHalo : public HaloPeer {
 public:
  MpiHalo(const MpiApi<Abi>& api, std::string name)
      : context_(api), requests_(context_), name_(std::move(name)), persistent_(name_.ends_with("persistent")) {}
  std::string_view name() const override { return name_; }

  void prepare(const Schedule& schedule, std::span<const std::span<std::byte>> arrays) final {
    arrays_.assign(arrays.begin(), arrays.end());
    const HaloWork work(schedule, context_.rank);
    copies_.clear();
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < work.copied_from.size(); ++i) {
      copies_.emplace_back(Part(work.copied_from[i]), Part(work.copied_to[i]));
      longest = std::max(longest, copies_.back().first.rows.bytes());
    }
    scratch_ = Buffer(longest);
    requests_.clear();
    make_messages(work);
    requests_.list.assign(receives_.size() + sends_.size(), context_.api.handles.request_null);
    if (!persistent_) return;
    for (std::size_t i = 0; i < receives_.size(); ++i) call(context_.mpi.recv_init, receives_, i, "MPI_Recv_init");
    for (std::size_t i = 0; i < sends_.size(); ++i) call(context_.mpi.send_init, sends_, i, "MPI_Send_init");
  }

 protected:
  struct Message {
    std::byte* memory;
    int count;
    typename Abi::Datatype type;
    int peer;
    int tag;
  };
  using Messages = std::vector<Message>;

  // Sets `sends_` and `receives_`.
  virtual void make_messages(const HaloWork& work) = 0;
  [[nodiscard]] std::byte* array(int number) const { return arrays_[static_cast<std::size_t>(number)].data(); }

  void start_receives() const {
    if (persistent_) return requests_.start(0, receives_.size());
    for (std::size_t i = 0; i < receives_.size(); ++i) call(context_.api.irecv, receives_, i, "MPI_Irecv");
  }
  void start_send(std::size_t i) const {
    if (!persistent_) return call(context_.api.isend, sends_, i, "MPI_Isend");
    requests_.start(receives_.size() + i, 1);
  }
  void start_messages() const {
    if (persistent_) return requests_.start(0, requests_.list.size());
    start_receives();
    for (std::size_t i = 0; i < sends_.size(); ++i) start_send(i);
  }

  void copy_inside() const {
    for (const auto& [from, to] : copies_) {
      if (from.rows.congruent(to.rows)) {
        from.rows.copy(array(to.array), to.rows, array(from.array));
      } else {
        from.rows.pack(scratch_.data(), array(from.array));
        to.rows.unpack(array(to.array), scratch_.data());
      }
    }
  }

  MpiContext<Abi> context_;
  Messages sends_, receives_;
  MpiRequests<Abi> requests_;  // of all receives, then of all sends

 private:
  template <class Function>
  void call(const Function& function, const Messages& messages, std::size_t i, const char* what) const {
    const Message& m = messages[i];
    auto* const request = requests_.data() + (&messages == &sends_ ? receives_.size() : 0) + i;
    context_.check(function(m.memory, m.count, m.type, m.peer, m.tag, context_.comm, request), what);
  }

  std::string name_;
  bool persistent_;
  std::vector<std::span<std::byte>> arrays_;
  std::vector<std::pair<Part, Part>> copies_;  // from, to
  Buffer scratch_;
};

// Packs faces into buffers: one message per face, or one per neighbour.
template <class Abi>
class Packed final : public MpiHalo<Abi> {
 public:
  using MpiHalo<Abi>::MpiHalo;

  void start() override {
    this->start_receives();
    for (std::size_t i = 0; i < this->sends_.size(); ++i) {
      std::byte* at = this->sends_[i].memory;
      for (const Part& part : parts_out_[i]) at = part.rows.pack(at, this->array(part.array));
      this->start_send(i);
    }
    this->copy_inside();
  }

  void finish() override {
    for (std::size_t i = 0; i < this->receives_.size(); ++i) {
      this->requests_.wait(i, 1);
      const std::byte* at = this->receives_[i].memory;
      for (const Part& part : parts_in_[i]) at = part.rows.unpack(this->array(part.array), at);
    }
    this->requests_.wait(this->receives_.size(), this->sends_.size());
  }

 private:
  using typename MpiHalo<Abi>::Messages;
  using Parts = std::vector<std::vector<Part>>;  // of each message

  void make_messages(const HaloWork& work) override {
    buffers_.clear();
    add_messages(work.sends, this->sends_, parts_out_);
    add_messages(work.receives, this->receives_, parts_in_);
  }
  void add_messages(const HaloPieces& pieces, Messages& messages, Parts& parts) {
    const bool merged = this->name().find("one message") != std::string_view::npos;
    messages.clear();
    parts.clear();
    std::map<std::pair<int, int>, std::size_t> known;
    for (const HaloPiece& piece : pieces) {
      const int tag = merged ? 0 : piece.tag;
      const auto [at, is_new] = known.try_emplace({piece.peer, tag}, messages.size());
      if (is_new) {
        messages.push_back({nullptr, 0, this->context_.byte, piece.peer, tag});
        parts.emplace_back();
      }
      parts[at->second].emplace_back(piece);
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      std::int64_t bytes = 0;
      for (const Part& part : parts[i]) bytes += part.rows.bytes();
      messages[i].count = static_cast<int>(bytes);
      messages[i].memory = buffers_.emplace_back(bytes).data();
    }
  }

  Parts parts_out_, parts_in_;
  std::vector<Buffer> buffers_;
};

// MPI's description of a slice, relative to the beginning of its array; freed with this object.
template <class Abi>
class SliceType {
 public:
  using Datatype = typename Abi::Datatype;

  SliceType(const MpiContext<Abi>& context, const HaloPiece& piece) : context_(context) {
    const auto& mpi = context.mpi;
    const Slice& slice = piece.slice;
    const std::int64_t bytes = piece.element_bytes;
    type = bytes == 8 ? context.api.handles.float64 : context.byte;
    if (bytes != 8 && bytes != 1) add("MPI_Type_contiguous", mpi.type_contiguous, static_cast<int>(bytes), type);
    if (slice.is_list()) {
      std::vector<std::intptr_t> places;
      for (const std::int64_t index : slice.indices()) places.push_back(index * bytes);
      add("MPI_Type_create_hindexed_block", mpi.type_create_hindexed_block, static_cast<int>(places.size()), 1,
          places.data(), type);
    } else {
      offset = slice.offset() * bytes;
      add_box(slice, bytes);
    }
    // A type of MPI's own needs no commit.
    if (!made_.empty()) context.check(mpi.type_commit(&made_.back()), "MPI_Type_commit");
  }
  SliceType(const SliceType&) = delete;
  SliceType& operator=(const SliceType&) = delete;
  ~SliceType() {
    if (!context_.running()) return;
    for (Datatype& made : made_) static_cast<void>(context_.mpi.type_free(&made));
  }

  Datatype type{};
  int count = 1;
  std::int64_t offset = 0;

 private:
  template <class Function, class... Arguments>
  void add(const char* what, const Function& function, Arguments... arguments) {
    context_.check(function(arguments..., &made_.emplace_back()), what);
    type = made_.back();
  }
  // From the inside out: a contiguous run is a count, a plane of runs one vector, and so on.
  void add_box(const Slice& slice, std::int64_t bytes) {
    auto d = static_cast<std::size_t>(slice.dims());
    count = slice.elements() == 0 ? 0 : 1;
    if (count == 0) return;
    int run = 1;
    if (d > 0 && slice.strides()[d - 1] == 1) run = static_cast<int>(slice.extents()[--d]);
    if (d == 0) count = run;
    for (; d-- > 0; run = 1) {
      add("MPI_Type_create_hvector", context_.mpi.type_create_hvector, static_cast<int>(slice.extents()[d]), run,
          slice.strides()[d] * bytes, type);
    }
  }

  const MpiContext<Abi>& context_;
  std::vector<Datatype> made_;
};

// Uses no buffers: MPI reads the faces from the array and writes them into it.
template <class Abi>
class Derived : public MpiHalo<Abi> {
 public:
  using MpiHalo<Abi>::MpiHalo;
  void start() override {
    this->start_messages();
    this->copy_inside();
  }
  void finish() override { this->requests_.wait(0, this->requests_.list.size()); }

 protected:
  void make_messages(const HaloWork& work) override {
    types_.clear();
    const auto set = [&](auto& messages, const HaloPieces& pieces) {
      messages.clear();
      for (const HaloPiece& piece : pieces) {
        const auto& made = types_.emplace_back(this->context_, piece);
        messages.push_back({this->array(piece.array) + made.offset, made.count, made.type, piece.peer, piece.tag});
      }
    };
    set(this->sends_, work.sends);
    set(this->receives_, work.receives);
  }

 private:
  std::deque<SliceType<Abi>> types_;
};

// One call for all faces. It returns only after all have arrived, so nothing overlaps.
template <class Abi>
class DerivedCollective final : public Derived<Abi> {
 public:
  using Derived<Abi>::Derived;
  ~DerivedCollective() override { clear(); }
  void start() override { this->copy_inside(); }
  void finish() override {
    const auto& c = this->context_;
    c.check(c.mpi.neighbor_alltoallw(nullptr, out_.counts.data(), out_.places.data(), out_.types.data(), nullptr,
                                     in_.counts.data(), in_.places.data(), in_.types.data(), *graph_),
            "MPI_Neighbor_alltoallw");
  }

 private:
  // Displacements are absolute addresses; the buffer is MPI_BOTTOM, a null pointer.
  struct Side {
    explicit Side(const typename MpiHalo<Abi>::Messages& messages) : weights(messages.size(), 1) {
      for (const auto& m : messages) {
        ranks.push_back(m.peer);
        counts.push_back(m.count);
        places.push_back(reinterpret_cast<std::intptr_t>(m.memory));
        types.push_back(m.type);
      }
    }
    std::vector<int> ranks, weights, counts;
    std::vector<std::intptr_t> places;
    std::vector<typename Abi::Datatype> types;
  };
  void make_messages(const HaloWork& work) override {
    Derived<Abi>::make_messages(work);
    clear();
    out_ = Side(this->sends_);
    in_ = Side(this->receives_);
    const auto& c = this->context_;
    c.check(c.mpi.dist_graph_create_adjacent(c.comm, static_cast<int>(in_.ranks.size()), in_.ranks.data(),
                                             in_.weights.data(), static_cast<int>(out_.ranks.size()), out_.ranks.data(),
                                             out_.weights.data(), c.api.handles.info_null, 0, &graph_.emplace()),
            "MPI_Dist_graph_create_adjacent");
  }
  void clear() noexcept {
    if (graph_) this->context_.api.free_quietly(*graph_);
    graph_.reset();
  }
  std::optional<typename Abi::Comm> graph_;
  Side out_{{}};
  Side in_{{}};
};

}  // namespace

std::vector<std::unique_ptr<HaloPeer>> mpi_halo_peers(const Group& group, std::string_view prefix) {
  using Peers = std::vector<std::unique_ptr<HaloPeer>>;
  return with_mpi<Peers>(group, [&]<class Abi>(const MpiApi<Abi>& api) {
    Peers peers;
    const auto add = [&]<class Peer>(const std::string& name) {
      if (name.starts_with(prefix)) peers.push_back(std::make_unique<Peer>(api, name));
    };
    for (const char* kind : {"packed, ", "packed, one message a neighbour, "}) {
      for (const char* calls : {"Isend/Irecv", "persistent"})
        add.template operator()<Packed<Abi>>(std::string(kind) + calls);
    }
    add.template operator()<Derived<Abi>>("derived datatypes, Isend/Irecv");
    add.template operator()<Derived<Abi>>("derived datatypes, persistent");
    add.template operator()<DerivedCollective<Abi>>("derived datatypes, Neighbor_alltoallw");
    return peers;
  });
}

}  // namespace onehop::measure
