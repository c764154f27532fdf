// Plain MPI: a halo with derived datatypes, from array to array.
#include <optional>

#include "measure/mpi/halo.h"

namespace onehop::measure {
namespace {

// MPI's description of a slice, relative to the beginning of its array; freed with this object.
template <class Abi>
class SliceType {
 public:
  using Datatype = typename Abi::Datatype;
  using Aint = typename MpiCalls<Abi>::Aint;

  SliceType(const MpiContext<Abi>& context, const HaloPiece& piece) : context_(&context) {
    const auto& mpi = context.mpi;
    const Slice& slice = piece.slice;
    Datatype type = element(piece.element_bytes);
    offset_ = slice.is_list() ? 0 : slice.offset() * piece.element_bytes;
    if (slice.is_list()) {
      std::vector<Aint> places;
      for (const std::int64_t index : slice.indices()) places.push_back(index * piece.element_bytes);
      context.check(mpi.type_create_hindexed_block(static_cast<int>(places.size()), 1, places.data(), type,
                                                   &made_.emplace_back()),
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
      : context_(other.context_),
        made_(std::exchange(other.made_, {})),
        type_(other.type_),
        count_(other.count_),
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
    if (d >= 0 && slice.strides()[static_cast<std::size_t>(d)] == 1)
      run = static_cast<int>(slice.extents()[static_cast<std::size_t>(d--)]);
    if (d < 0) {
      count_ = run;
      return type;
    }
    for (; d >= 0; --d, run = 1) {
      const auto i = static_cast<std::size_t>(d);
      context_->check(
          context_->mpi.type_create_hvector(static_cast<int>(slice.extents()[i]), run,
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

// Uses no buffers: MPI reads the faces from the array and writes them into it.
template <class Abi>
class Derived : public MpiHalo<Abi> {
 public:
  Derived(const MpiApi<Abi>& api, std::string name) : MpiHalo<Abi>(api, std::move(name)), requests_(this->context_) {}
  void start() override {
    const auto& api = this->context_.api;
    post(receives_, api.irecv, requests_.data(), "MPI_Irecv");
    post(sends_, api.isend, requests_.data() + receives_.size(), "MPI_Isend");
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

  void prepare_messages(const HaloWork& work, std::int64_t enlargement) override {
    if (enlargement != 1) throw BadInput("derived datatypes describe the array itself: the enlargement must be 1");
    requests_.clear();
    sends_ = ends(work.sends);
    receives_ = ends(work.receives);
    requests_.list.assign(sends_.size() + receives_.size(), this->context_.api.handles.request_null);
  }
  template <class Call>
  void post(const std::vector<End>& ends, const Call& call, typename Abi::Request* request, const char* what) const {
    const auto& c = this->context_;
    for (const End& end : ends) {
      c.check(call(this->array(end.array) + end.type.offset(), end.type.count(), end.type.type(), end.peer, end.tag,
                   c.comm, request++),
              what);
    }
  }
  [[nodiscard]] std::vector<End> ends(const std::vector<HaloPiece>& pieces) const {
    std::vector<End> made;
    made.reserve(pieces.size());
    for (const HaloPiece& piece : pieces)
      made.push_back({piece.peer, piece.tag, piece.array, SliceType<Abi>(this->context_, piece)});
    return made;
  }

  std::vector<End> sends_;
  std::vector<End> receives_;
  MpiRequests<Abi> requests_;
};

template <class Abi>
class DerivedPersistent final : public Derived<Abi> {
 public:
  using Derived<Abi>::Derived;
  void start() override {
    this->requests_.start_all();
    this->copy_inside();
  }

 private:
  void prepare_messages(const HaloWork& work, std::int64_t enlargement) override {
    Derived<Abi>::prepare_messages(work, enlargement);
    const auto& mpi = this->context_.mpi;
    auto* const requests = this->requests_.data();
    this->post(this->receives_, mpi.recv_init, requests, "MPI_Recv_init");
    this->post(this->sends_, mpi.send_init, requests + this->receives_.size(), "MPI_Send_init");
  }
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
    std::vector<int> ranks, weights, counts;
    std::vector<std::intptr_t> places;
    std::vector<typename Abi::Datatype> types;
  };
  void prepare_messages(const HaloWork& work, std::int64_t enlargement) override {
    Derived<Abi>::prepare_messages(work, enlargement);
    clear();
    out_ = side(this->sends_);
    in_ = side(this->receives_);
    const auto& c = this->context_;
    c.check(c.mpi.dist_graph_create_adjacent(c.comm, static_cast<int>(in_.ranks.size()), in_.ranks.data(),
                                             in_.weights.data(), static_cast<int>(out_.ranks.size()), out_.ranks.data(),
                                             out_.weights.data(), c.api.handles.info_null, 0, &graph_.emplace()),
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

}  // namespace

void add_derived_halos(const detail::AnyMpi& mpi, std::string_view prefix,
                       std::vector<std::unique_ptr<HaloPeer>>& peers) {
  std::visit(
      [&]<class Abi>(const MpiApi<Abi>* api) {
        const auto add = [&]<class Peer>(const std::string& name) {
          if (name.starts_with(prefix)) peers.push_back(std::make_unique<Peer>(*api, name));
        };
        add.template operator()<Derived<Abi>>("derived datatypes, Isend/Irecv");
        add.template operator()<DerivedPersistent<Abi>>("derived datatypes, persistent");
        add.template operator()<DerivedCollective<Abi>>("derived datatypes, Neighbor_alltoallw");
      },
      mpi);
}

}  // namespace onehop::measure
