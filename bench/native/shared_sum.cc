#include "bench/native/shared_sum.h"

#include <sched.h>

#include <algorithm>
#include <array>

#include "collectives/reduce.h"
#include "measure/rounds.h"
#include "src/base/cpu.h"

namespace onehop::bench {
namespace {

constexpr std::size_t half_bytes = std::size_t{1} << 20U;
constexpr std::size_t header_bytes = 64;
constexpr int polls_before_a_yield = 2000;

}  // namespace

struct SharedSum::Page {
  alignas(header_bytes) std::atomic<std::uint64_t> ready{0};  // pieces that this rank has stored
};

bool SharedSum::possible(const Group& group) {
  return group.size() > 1 && group.size() <= most_ranks && static_cast<int>(group.local_ranks().size()) == group.size();
}

SharedSum::SharedSum(const Group& group)
    : rank_(group.rank()),
      size_(group.size()),
      memories_(measure::memory_of_all(group, static_cast<std::int64_t>(header_bytes + 2 * half_bytes))),
      store_(onehop::detail::store_function(StoreKind::nontemporal)) {}

SharedSum::Page& SharedSum::page(int rank) const noexcept {
  return *reinterpret_cast<Page*>(memories_[static_cast<std::size_t>(rank)].data());
}

std::byte* SharedSum::half(int rank) const noexcept {
  return memories_[static_cast<std::size_t>(rank)].data() + header_bytes + (piece_ % 2) * half_bytes;
}

void SharedSum::run(std::span<float> array) {
  constexpr std::size_t most = half_bytes / sizeof(float);
  for (std::size_t i = 0; i < array.size(); i += most) add_piece(array.subspan(i, std::min(most, array.size() - i)));
}

// A rank stores piece n into the half that held piece n - 2. Every rank has read that one: it has published n - 1,
// which this rank has waited for, only after it.
void SharedSum::add_piece(std::span<float> piece) {
  using collectives::ReduceOp;
  store_(half(rank_), std::as_bytes(piece).data(), piece.size_bytes());
  page(rank_).ready.store(piece_ + 1, std::memory_order_release);
  std::array<const std::byte*, most_ranks> sources{};
  sources[0] = std::as_bytes(piece).data();
  for (int i = 1; i < size_; ++i) {
    const int other = (rank_ + i) % size_;
    for (int polls = 0; page(other).ready.load(std::memory_order_acquire) <= piece_; ++polls) {
      if (polls < polls_before_a_yield) {
        cpu::pause();
      } else {
        sched_yield();
      }
    }
    sources[static_cast<std::size_t>(i)] = half(other);
  }
  static const auto add = collectives::detail::reduce_function(ElementType::float32, ReduceOp::sum);
  add(sources.data(), size_, std::as_writable_bytes(piece).data(), piece.size());
  ++piece_;
}

}  // namespace onehop::bench
