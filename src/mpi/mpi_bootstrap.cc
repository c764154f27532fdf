#include "src/mpi/mpi_bootstrap.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "src/group/liveness.h"
#include "src/mpi/mpi_transport.h"

namespace onehop::detail {
namespace {

// The buffers of a collective in progress. MPI may write to them until the operation completes, even if the wait for it
// fails.
struct Portion {
  std::vector<std::byte> mine;
  std::vector<std::byte> all;
  std::vector<int> counts;
  std::vector<int> starts;
};

// Leaks memory to which MPI may still write.
template <class T>
void give_up(std::unique_ptr<T>& owner) {
  [[maybe_unused]] const T* memory = owner.release();
}

}  // namespace

template <class Abi>
MpiBootstrap<Abi>::MpiBootstrap(const MpiApi<Abi>& api, Comm own, std::int64_t portion)
    : api_(api), comm_(own), portion_(portion) {
  api_.call("MPI_Comm_rank", api_.comm_rank, comm_, &rank_);
  api_.call("MPI_Comm_size", api_.comm_size, comm_, &size_);
}

template <class Abi>
MpiBootstrap<Abi>::~MpiBootstrap() {
  api_.free_quietly(comm_);
}

template <class Abi>
void MpiBootstrap<Abi>::wait(typename Abi::Request& request) const {
  // Ranks may share processors, so the wait yields soon and later sleeps.
  constexpr int spins = 100, yields = 2000, naps_between_checks = 64;
  const timespec nap{0, 50'000};
  Deadline deadline(timeout_);
  double noticed = -1;
  for (int polls = 0; !api_.done(request); ++polls) {
    if (polls < spins) continue;
    if (polls < spins + yields) {
      sched_yield();
      continue;
    }
    nanosleep(&nap, nullptr);
    if (polls % naps_between_checks != 0) continue;
    call_interrupt_check();
    check_peers(deadline, noticed);
  }
}

template <class Abi>
void MpiBootstrap<Abi>::check_peers(Deadline& deadline, double& noticed) const {
  const std::string own = "rank " + std::to_string(rank_);
  const std::string where = "an all-gather over MPI (making or splitting a group, opening channels, a barrier)";
  // A rank may leave right after its last all-gather, while its contribution is still on its way.
  constexpr double grace_seconds = 0.5;
  const int gone = gone_ ? gone_() : -1;
  if (gone >= 0 && noticed < 0) noticed = deadline.seconds();
  if (gone >= 0 && deadline.seconds() > noticed + grace_seconds) {
    tell_(gone);
    throw PeerLost(gone, "rank " + std::to_string(gone) + " has ended or closed its group while " + own +
                             " waits for it in " + where + "; do all ranks make the same steps?");
  }
  deadline.check([&] { return own + " waited for the other ranks in " + where; });
}

template <class Abi>
std::vector<std::int64_t> MpiBootstrap<Abi>::gather_lengths(std::int64_t mine) const {
  auto own = std::make_unique<std::int64_t>(mine);
  auto all = std::make_unique<std::vector<std::int64_t>>(static_cast<std::size_t>(size_));
  auto request = api_.handles.request_null;
  api_.call("MPI_Iallgather", api_.iallgather, own.get(), int{sizeof *own}, api_.handles.byte, all->data(),
            int{sizeof *own}, api_.handles.byte, comm_, &request);
  try {
    wait(request);
  } catch (...) {
    // MPI continues the operation, so its memory must stay.
    give_up(own);
    give_up(all);
    throw;
  }
  return std::move(*all);
}

template <class Abi>
Gathered MpiBootstrap<Abi>::allgather(std::span<const std::byte> mine) {
  const auto lengths = gather_lengths(static_cast<std::int64_t>(mine.size()));
  std::vector<std::size_t> ends;
  for (const std::int64_t length : lengths)
    ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<std::size_t>(length));
  std::vector<std::byte> gathered(ends.back());
  const std::int64_t longest = *std::ranges::max_element(lengths);
  const std::int64_t step = std::max<std::int64_t>(1, portion_ / size_);
  for (std::int64_t begin = 0; begin < longest; begin += step) {
    const auto share = [&](std::int64_t length) { return std::clamp<std::int64_t>(length - begin, 0, step); };
    auto portion = std::make_unique<Portion>();
    int total = 0;
    for (const std::int64_t length : lengths) {
      portion->starts.push_back(total);
      portion->counts.push_back(static_cast<int>(share(length)));
      total += portion->counts.back();
    }
    const auto own = mine.subspan(std::min(mine.size(), static_cast<std::size_t>(begin)),
                                  static_cast<std::size_t>(share(static_cast<std::int64_t>(mine.size()))));
    portion->mine.assign(own.begin(), own.end());
    portion->all.resize(static_cast<std::size_t>(total));
    auto request = api_.handles.request_null;
    api_.call("MPI_Iallgatherv", api_.iallgatherv, portion->mine.data(), static_cast<int>(portion->mine.size()),
              api_.handles.byte, portion->all.data(), portion->counts.data(), portion->starts.data(), api_.handles.byte,
              comm_, &request);
    try {
      wait(request);
    } catch (...) {
      give_up(portion);
      throw;
    }
    for (std::size_t r = 0; r < lengths.size(); ++r) {
      if (portion->counts[r] == 0) continue;
      std::memcpy(gathered.data() + ends[r] - lengths[r] + begin, portion->all.data() + portion->starts[r],
                  static_cast<std::size_t>(portion->counts[r]));
    }
  }
  return {std::move(gathered), std::move(ends)};
}

template <class Abi>
std::unique_ptr<Bootstrap> MpiBootstrap<Abi>::split(const GroupPart& part) {
  Comm made = api_.handles.comm_null;
  api_.call("MPI_Comm_split", api_.comm_split, comm_, part.color < 0 ? Abi::undefined : part.color, part.key, &made);
  if (made == api_.handles.comm_null) return nullptr;
  api_.call("MPI_Comm_set_errhandler", api_.comm_set_errhandler, made, api_.handles.errors_return);
  auto bootstrap = std::make_unique<MpiBootstrap>(api_, made);
  bootstrap->set_timeout(timeout_);
  return bootstrap;
}

template <class Abi>
std::shared_ptr<Transport> MpiBootstrap<Abi>::remote_transport() {
  return make_mpi_transport(api_, api_.duplicate(comm_));
}

template class MpiBootstrap<OpenMpiAbi>;
template class MpiBootstrap<MpichAbi>;
template class MpiBootstrap<StandardAbi>;

}  // namespace onehop::detail
