#include <algorithm>
#include <cstring>
#include <utility>

#include "bench/native/mpi/peers.h"
#include "measure/mpi/context.h"
#include "src/plan/direct/run_exchange.h"

namespace onehop::bench {
namespace {

constexpr std::size_t max_at_once = std::size_t{1} << 30;  // counts are ints

template <class Abi>
class Swaps {
 public:
  Swaps(const MpiApi<Abi>& api, std::span<std::byte> state, const PermuteBitsSpec& spec,
        const std::vector<std::pair<int, int>>& pairs)
      : context_(api), state_(state), buffer_(static_cast<std::int64_t>(state.size())) {
    for (const auto& [local, global] : pairs) {
      const int rank_bit = global - spec.local_bits;
      Swap swap;
      swap.peer = context_.rank ^ (1 << rank_bit);
      const bool moves_if_set = (context_.rank >> rank_bit & 1) == 0;
      swap.first = moves_if_set ? static_cast<std::size_t>(spec.element_bytes) << local : 0;
      swap.runs = detail::Runs(spec.local_bits, std::uint64_t{1} << local, spec.element_bytes);
      swaps_.push_back(swap);
    }
  }

  void run() const {
    for (const Swap& swap : swaps_) exchange(swap);
  }

 private:
  struct Swap {
    int peer = 0;
    std::size_t first = 0;  // the first element that moves
    detail::Runs runs;
  };

  template <class Visit>
  void for_each_run(const Swap& swap, const Visit& visit) const {
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < swap.runs.count(); ++i, at = swap.runs.after(at)) {
      visit(state_.data() + swap.first + at * static_cast<std::uint64_t>(swap.runs.element_bytes()));
    }
  }

  void exchange(const Swap& swap) const {
    const std::size_t half = state_.size() / 2;
    std::byte* const out = buffer_.data();
    std::byte* const in = buffer_.data() + half;
    const auto run = static_cast<std::size_t>(swap.runs.run_bytes());
    std::byte* packed = out;
    // Runs of one element of 16 bytes are the common case that a call to memcpy would slow down.
    if (run == 16) {
      for_each_run(swap, [&](const std::byte* from) { std::memcpy(std::exchange(packed, packed + 16), from, 16); });
    } else {
      for_each_run(swap, [&](const std::byte* from) { std::memcpy(std::exchange(packed, packed + run), from, run); });
    }
    for (std::size_t at = 0; at < half; at += max_at_once) {
      const int count = static_cast<int>(std::min(max_at_once, half - at));
      context_.check(context_.mpi.sendrecv(out + at, count, context_.byte, swap.peer, 0, in + at, count, context_.byte,
                                           swap.peer, 0, context_.comm, context_.ignore()),
                     "MPI_Sendrecv");
    }
    const std::byte* unpacked = in;
    if (run == 16) {
      for_each_run(swap, [&](std::byte* to) { std::memcpy(to, std::exchange(unpacked, unpacked + 16), 16); });
    } else {
      for_each_run(swap, [&](std::byte* to) { std::memcpy(to, std::exchange(unpacked, unpacked + run), run); });
    }
  }

  MpiContext<Abi> context_;
  std::span<std::byte> state_;
  Buffer buffer_;
  std::vector<Swap> swaps_;
};

}  // namespace

std::function<void()> mpi_swaps(const Group& group, std::span<std::byte> state, const PermuteBitsSpec& spec,
                                const std::vector<std::pair<int, int>>& pairs) {
  return with_mpi<std::function<void()>>(group, [&]<class Abi>(const MpiApi<Abi>& api) {
    return [swaps = std::make_shared<const Swaps<Abi>>(api, state, spec, pairs)] { swaps->run(); };
  });
}

}  // namespace onehop::bench
