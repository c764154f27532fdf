// The bootstrap over an MPI communicator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/channel/transport/transport.h"
#include "src/group/bootstrap.h"
#include "src/group/liveness.h"
#include "src/mpi/api.h"

namespace onehop::detail {

template <class Abi>
class MpiBootstrap final : public Bootstrap {
 public:
  using Comm = typename Abi::Comm;

  // MPI_Allgatherv counts in int, so contributions are gathered in portions of at most this many bytes in total.
  static constexpr std::int64_t largest_portion = std::int64_t{1} << 30;

  // Takes ownership of the communicator `own`.
  MpiBootstrap(const MpiApi<Abi>& api, Comm own, std::int64_t portion = largest_portion);
  ~MpiBootstrap() override;

  [[nodiscard]] Gathered allgather(std::span<const std::byte> mine) override;
  [[nodiscard]] bool can_split() const override { return true; }
  [[nodiscard]] std::unique_ptr<Bootstrap> split(const GroupPart& part) override;
  void set_timeout(double seconds) override { timeout_ = seconds; }
  void watch(std::function<int()> gone, std::function<void(int)> tell) override {
    gone_ = std::move(gone);
    tell_ = std::move(tell);
  }
  [[nodiscard]] std::shared_ptr<Transport> remote_transport() override;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

 private:
  void wait(typename Abi::Request& request) const;
  // Throws if the wait cannot succeed. `noticed`: seconds until a rank was first seen to be gone; -1: none was.
  void check_peers(Deadline& deadline, double& noticed) const;
  [[nodiscard]] std::vector<std::int64_t> gather_lengths(std::int64_t mine) const;

  const MpiApi<Abi>& api_;
  Comm comm_;
  std::int64_t portion_;
  int rank_ = 0;
  int size_ = 1;
  double timeout_ = 0;
  std::function<int()> gone_;
  std::function<void(int)> tell_;
};

extern template class MpiBootstrap<OpenMpiAbi>;
extern template class MpiBootstrap<MpichAbi>;
extern template class MpiBootstrap<StandardAbi>;

}  // namespace onehop::detail
