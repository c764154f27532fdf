// Plain MPI, a halo between arrays: packed by hand, or with derived datatypes from array to array.
#include <map>
#include <optional>

#include "mpi_context.h"
#include "mpi_peers.h"
#include "pack.h"

namespace onehop::bench {
namespace {

// One transfer as one rank sees it.
struct Piece {
  int peer = 0;
  int tag = 0;  // number among the transfers between these two ranks, the same on both
  int array = 0;
  std::int64_t element_bytes = 8;
  Slice slice;
};

struct LocalCopy {
  Piece from;
  Piece to;
};

// What a rank has to do in a schedule's first round.
struct Work {
  std::vector<Piece> sends;
  std::vector<Piece> receives;
  std::vector<LocalCopy> copies;

  Work() = default;
  Work(const Schedule& schedule, int rank) {
    if (schedule.rounds.empty()) return;
    std::map<std::pair<int, int>, int> tags;
    for (const Transfer& transfer : schedule.rounds.front().transfers) {
      const int tag = tags[{transfer.from.rank, transfer.to.rank}]++;
      const auto piece = [&](const Place& place, int peer) {
        return Piece{peer, tag, place.array, schedule.arrays.at(static_cast<std::size_t>(place.array)).element_bytes, place.slice};
      };
      const bool from_here = transfer.from.rank == rank, to_here = transfer.to.rank == rank;
      if (from_here && to_here) {
        copies.push_back({piece(transfer.from, rank), piece(transfer.to, rank)});
      } else if (from_here) {
        sends.push_back(piece(transfer.from, transfer.to.rank));
      } else if (to_here) {
        receives.push_back(piece(transfer.to, transfer.from.rank));
      }
    }
  }
};

// What every contestant does: copies inside the rank.
template <class Abi>
class MpiHalo : public HaloPeer {
 public:
  MpiHalo(const MpiApi<Abi>& api, std::string name) : context_(api), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }

  void prepare(const Schedule& schedule, std::span<const std::span<std::byte>> arrays, std::int64_t enlargement) final {
    arrays_.assign(arrays.begin(), arrays.end());
    const Work work(schedule, context_.rank);
    copies_.clear();
    std::int64_t longest = 0;
    for (const LocalCopy& copy : work.copies) {
      copies_.push_back({copy.from.array, Rows(copy.from.slice, copy.from.element_bytes), copy.to.array,
                         Rows(copy.to.slice, copy.to.element_bytes)});
      longest = std::max(longest, copies_.back().from_rows.bytes());
    }
    scratch_ = Memory(longest);
    prepare_messages(work, enlargement);
  }

 protected:
  virtual void prepare_messages(const Work& work, std::int64_t enlargement) = 0;
  [[nodiscard]] std::byte* array(int number) const { return arrays_[static_cast<std::size_t>(number)].data(); }

  void copy_inside() const {
    for (const Copy& copy : copies_) {
      if (copy.from_rows.congruent(copy.to_rows)) {
        copy.from_rows.copy(array(copy.to), copy.to_rows, array(copy.from));
      } else {
        copy.from_rows.pack(scratch_.data(), array(copy.from));
        copy.to_rows.unpack(array(copy.to), scratch_.data());
      }
    }
  }

  MpiContext<Abi> context_;

 private:
  struct Copy {
    int from = 0;
    Rows from_rows;
    int to = 0;
    Rows to_rows;
  };
  std::string name_;
  std::vector<std::span<std::byte>> arrays_;
  std::vector<Copy> copies_;
  Memory scratch_;
};

// Faces are packed into buffers: one message for each face, or one for each neighbour.
template <class Abi>
class Packed final : public MpiHalo<Abi> {
 public:
  Packed(const MpiApi<Abi>& api, std::string name, bool merged, bool persistent)
      : MpiHalo<Abi>(api, std::move(name)),
        sending_(this->context_),
        receiving_(this->context_),
        merged_(merged),
        persistent_(persistent) {}

  void prepare_messages(const Work& work, std::int64_t enlargement) override {
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
    Memory buffer;
    [[nodiscard]] int count() const { return static_cast<int>(bytes); }
  };

  [[nodiscard]] std::vector<Message> messages(const std::vector<Piece>& pieces, std::int64_t enlargement) const {
    std::vector<Message> made;
    std::map<std::pair<int, int>, std::size_t> known;
    for (const Piece& piece : pieces) {
      const int tag = merged_ ? 0 : piece.tag;
      const auto [at, is_new] = known.try_emplace({piece.peer, tag}, made.size());
      if (is_new) made.push_back({piece.peer, tag, {}, 0, {}});
      Message& message = made[at->second];
      message.parts.push_back({piece.array, Rows(piece.slice, piece.element_bytes)});
      message.bytes += message.parts.back().rows.bytes();
    }
    for (Message& message : made) {
      message.bytes *= enlargement;
      message.buffer = Memory(message.bytes);
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

// MPI's description of a slice, relative to the beginning of its array; freed with this object.
template <class Abi>
class SliceType {
 public:
  using Datatype = typename Abi::Datatype;
  using Aint = typename MpiCalls<Abi>::Aint;

  SliceType(const MpiContext<Abi>& context, const Piece& piece) : context_(&context) {
    const auto& mpi = context.mpi;
    const Slice& slice = piece.slice;
    Datatype type = element(piece.element_bytes);
    offset_ = slice.is_list() ? 0 : slice.offset() * piece.element_bytes;
    if (slice.is_list()) {
      std::vector<Aint> places;
      for (const std::int64_t index : slice.indices()) places.push_back(index * piece.element_bytes);
      context.check(mpi.type_create_hindexed_block(static_cast<int>(places.size()), 1, places.data(), type, &made_.emplace_back()),
                    "MPI_Type_create_hindexed_block");
      type = made_.back();
    } else {
      type = box(slice, piece.element_bytes, type);
    }
    // A type of MPI's own needs no commit.
    if (!made_.empty()) context.check(mpi.type_commit(&made_.back()), "MPI_Type_commit");
    type_ = type;
  }
  SliceType(SliceType&& other) noexcept
      : context_(other.context_), made_(std::exchange(other.made_, {})), type_(other.type_), count_(other.count_),
        offset_(other.offset_) {}
  SliceType& operator=(SliceType&&) = delete;
  ~SliceType() {
    if (!context_->running()) return;
    for (Datatype& type : made_) static_cast<void>(context_->mpi.type_free(&type));
  }

  [[nodiscard]] Datatype type() const noexcept { return type_; }
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] Aint offset() const noexcept { return offset_; }

 private:
  Datatype element(std::int64_t bytes) {
    if (bytes == 8) return context_->api.handles.float64;
    if (bytes == 1) return context_->byte;
    context_->check(context_->mpi.type_contiguous(static_cast<int>(bytes), context_->byte, &made_.emplace_back()),
                    "MPI_Type_contiguous");
    return made_.back();
  }
  // From the inside out: a contiguous run is a count, a plane of runs one vector, and so on.
  Datatype box(const Slice& slice, std::int64_t element_bytes, Datatype type) {
    int d = slice.dims() - 1;
    int run = 1;
    if (slice.elements() == 0) {
      count_ = 0;
      return type;
    }
    if (d >= 0 && slice.strides()[static_cast<std::size_t>(d)] == 1) run = static_cast<int>(slice.extents()[static_cast<std::size_t>(d--)]);
    if (d < 0) {
      count_ = run;
      return type;
    }
    for (; d >= 0; --d, run = 1) {
      const auto i = static_cast<std::size_t>(d);
      context_->check(context_->mpi.type_create_hvector(static_cast<int>(slice.extents()[i]), run,
                                                        slice.strides()[i] * element_bytes, type, &made_.emplace_back()),
                      "MPI_Type_create_hvector");
      type = made_.back();
    }
    return type;
  }

  const MpiContext<Abi>* context_;
  std::vector<Datatype> made_;
  Datatype type_{};
  int count_ = 1;
  Aint offset_ = 0;
};

// No buffers of our own: MPI takes the faces from the array and puts them there.
template <class Abi>
class Derived : public MpiHalo<Abi> {
 public:
  Derived(const MpiApi<Abi>& api, std::string name) : MpiHalo<Abi>(api, std::move(name)), requests_(this->context_) {}
  void start() override {
    const auto& c = this->context_;
    auto* request = requests_.data();
    for (const End& end : receives_) {
      c.check(c.api.irecv(this->array(end.array) + end.type.offset(), end.type.count(), end.type.type(), end.peer, end.tag,
                          c.comm, request++),
              "MPI_Irecv");
    }
    for (const End& end : sends_) {
      c.check(c.api.isend(this->array(end.array) + end.type.offset(), end.type.count(), end.type.type(), end.peer, end.tag,
                          c.comm, request++),
              "MPI_Isend");
    }
    this->copy_inside();
  }
  void finish() override { requests_.wait_all(); }

 protected:
  struct End {
    int peer;
    int tag;
    int array;
    SliceType<Abi> type;
  };

  void prepare_messages(const Work& work, std::int64_t enlargement) override {
    if (enlargement != 1) throw BadInput("derived datatypes describe the array itself: the enlargement must be 1");
    requests_.clear();
    sends_ = ends(work.sends);
    receives_ = ends(work.receives);
    requests_.list.assign(sends_.size() + receives_.size(), this->context_.api.handles.request_null);
  }
  [[nodiscard]] std::vector<End> ends(const std::vector<Piece>& pieces) const {
    std::vector<End> made;
    made.reserve(pieces.size());
    for (const Piece& piece : pieces) made.push_back({piece.peer, piece.tag, piece.array, SliceType<Abi>(this->context_, piece)});
    return made;
  }

  std::vector<End> sends_;
  std::vector<End> receives_;
  MpiRequests<Abi> requests_;
};

template <class Abi>
class DerivedPersistent final : public Derived<Abi> {
 public:
  explicit DerivedPersistent(const MpiApi<Abi>& api) : Derived<Abi>(api, "derived datatypes, persistent") {}
  void start() override {
    if (!this->requests_.list.empty()) this->requests_.start_all();
    this->copy_inside();
  }

 private:
  void prepare_messages(const Work& work, std::int64_t enlargement) override {
    Derived<Abi>::prepare_messages(work, enlargement);
    const auto& c = this->context_;
    auto* request = this->requests_.data();
    for (const auto& end : this->receives_) {
      c.check(c.mpi.recv_init(this->array(end.array) + end.type.offset(), end.type.count(), end.type.type(), end.peer, end.tag,
                              c.comm, request++),
              "MPI_Recv_init");
    }
    for (const auto& end : this->sends_) {
      c.check(c.mpi.send_init(this->array(end.array) + end.type.offset(), end.type.count(), end.type.type(), end.peer, end.tag,
                              c.comm, request++),
              "MPI_Send_init");
    }
  }
};

// One call for all faces; it does not return before all have come, so nothing overlaps.
template <class Abi>
class DerivedCollective final : public Derived<Abi> {
 public:
  explicit DerivedCollective(const MpiApi<Abi>& api) : Derived<Abi>(api, "derived datatypes, Neighbor_alltoallw") {}
  ~DerivedCollective() override { clear(); }
  void start() override { this->copy_inside(); }
  void finish() override {
    const auto& c = this->context_;
    c.check(c.mpi.neighbor_alltoallw(nullptr, out_.counts.data(), out_.places.data(), out_.types.data(), nullptr,
                                     in_.counts.data(), in_.places.data(), in_.types.data(), *graph_),
            "MPI_Neighbor_alltoallw");
  }

 private:
  // Places are addresses: the buffers given to MPI are its MPI_BOTTOM, a null pointer.
  struct Side {
    std::vector<int> ranks, weights, counts;
    std::vector<std::intptr_t> places;
    std::vector<typename Abi::Datatype> types;
  };
  void prepare_messages(const Work& work, std::int64_t enlargement) override {
    Derived<Abi>::prepare_messages(work, enlargement);
    clear();
    out_ = side(this->sends_);
    in_ = side(this->receives_);
    const auto& c = this->context_;
    c.check(c.mpi.dist_graph_create_adjacent(c.comm, static_cast<int>(in_.ranks.size()), in_.ranks.data(), in_.weights.data(),
                                             static_cast<int>(out_.ranks.size()), out_.ranks.data(), out_.weights.data(),
                                             c.api.handles.info_null, 0, &graph_.emplace()),
            "MPI_Dist_graph_create_adjacent");
  }
  [[nodiscard]] Side side(const std::vector<typename Derived<Abi>::End>& ends) const {
    Side made;
    for (const auto& end : ends) {
      made.ranks.push_back(end.peer);
      made.weights.push_back(1);
      made.counts.push_back(end.type.count());
      made.places.push_back(reinterpret_cast<std::intptr_t>(this->array(end.array) + end.type.offset()));
      made.types.push_back(end.type.type());
    }
    return made;
  }
  void clear() noexcept {
    if (graph_) this->context_.api.free_quietly(*graph_);
    graph_.reset();
  }
  std::optional<typename Abi::Comm> graph_;
  Side out_;
  Side in_;
};

template <class Abi>
void add_all(const MpiApi<Abi>& api, std::vector<std::unique_ptr<HaloPeer>>& peers) {
  peers.push_back(std::make_unique<Packed<Abi>>(api, "packed, Isend/Irecv", false, false));
  peers.push_back(std::make_unique<Packed<Abi>>(api, "packed, persistent", false, true));
  peers.push_back(std::make_unique<Packed<Abi>>(api, "packed, one message a neighbour, Isend/Irecv", true, false));
  peers.push_back(std::make_unique<Packed<Abi>>(api, "packed, one message a neighbour, persistent", true, true));
  peers.push_back(std::make_unique<Derived<Abi>>(api, "derived datatypes, Isend/Irecv"));
  peers.push_back(std::make_unique<DerivedPersistent<Abi>>(api));
  peers.push_back(std::make_unique<DerivedCollective<Abi>>(api));
}

}  // namespace

std::vector<std::unique_ptr<HaloPeer>> mpi_halo_peers(std::string* why_not) {
  std::vector<std::unique_ptr<HaloPeer>> peers;
  if (const auto mpi = mpi_to_compete_with(0, why_not)) {
    std::visit([&peers](const auto* api) { add_all(*api, peers); }, *mpi);
  }
  return peers;
}

}  // namespace onehop::bench
