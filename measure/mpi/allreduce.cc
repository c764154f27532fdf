// Plain MPI: a sum of float32 over all ranks.
#include "measure/mpi/context.h"
#include "measure/mpi/peers.h"

namespace onehop::measure {
namespace {

// What MPI calls the source of a sum.
template <class Abi>
const void* source_of(std::span<const float> source, std::span<float> result) {
  return source.data() == result.data() ? Abi::in_place() : source.data();
}

template <class Abi>
class Blocking final : public AllReducePeer {
 public:
  explicit Blocking(const MpiApi<Abi>& api) : context_(api) {}
  std::string_view name() const override { return "MPI_Allreduce"; }
  void prepare(std::span<const float> source, std::span<float> result) override {
    source_ = source;
    result_ = result;
  }
  void run() override {
    const auto& c = context_;
    c.check(c.mpi.allreduce(source_of<Abi>(source_, result_), result_.data(), static_cast<int>(source_.size()),
                            c.api.handles.float32, c.api.handles.sum, c.comm),
            "MPI_Allreduce");
  }

 private:
  MpiContext<Abi> context_;
  std::span<const float> source_;
  std::span<float> result_;
};

template <class Abi>
class Persistent final : public AllReducePeer {
 public:
  explicit Persistent(const MpiApi<Abi>& api) : context_(api), requests_(context_) {}
  std::string_view name() const override { return "MPI_Allreduce_init"; }
  void prepare(std::span<const float> source, std::span<float> result) override {
    const auto& c = context_;
    requests_.clear();
    c.check(c.mpi.allreduce_init(source_of<Abi>(source, result), result.data(), static_cast<int>(source.size()),
                                 c.api.handles.float32, c.api.handles.sum, c.comm, c.api.handles.info_null,
                                 requests_.add()),
            "MPI_Allreduce_init");
  }
  void run() override {
    const auto& c = context_;
    c.check(c.mpi.start(requests_.data()), "MPI_Start");
    c.check(c.mpi.wait(requests_.data(), c.ignore()), "MPI_Wait");
  }
  [[nodiscard]] bool possible() const { return context_.mpi.allreduce_init != nullptr; }

 private:
  MpiContext<Abi> context_;
  MpiRequests<Abi> requests_;
};

template <class Abi>
void add_all(const MpiApi<Abi>& api, std::vector<std::unique_ptr<AllReducePeer>>& peers) {
  peers.push_back(std::make_unique<Blocking<Abi>>(api));
  auto persistent = std::make_unique<Persistent<Abi>>(api);
  if (persistent->possible()) peers.push_back(std::move(persistent));
}

}  // namespace

std::vector<std::unique_ptr<AllReducePeer>> mpi_allreduce_peers(const Group& group) {
  return mpi_peers<AllReducePeer>(group, [](const auto& api, auto& peers) { add_all(api, peers); });
}

}  // namespace onehop::measure
