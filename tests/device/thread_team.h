// A team whose threads are threads, so that the thread sanitizer sees races inside a group, and teams with a fault.
#pragma once

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "src/device/all_kernels.h"

namespace onehop::device::testing {

enum class Fault { none, relaxed_flag, missing_barrier };

// std::barrier orders threads that wait at different barriers, too, which would hide races between groups.
class Barrier {
 public:
  explicit Barrier(uint32_t threads) : threads_(threads) {}
  void arrive_and_wait() {
    const uint32_t generation = generation_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(generation + 1, std::memory_order_release);
    }
    while (generation_.load(std::memory_order_acquire) == generation) std::this_thread::yield();
  }

 private:
  uint32_t threads_;
  std::atomic<uint32_t> arrived_{0};
  std::atomic<uint32_t> generation_{0};
};

template <Fault fault = Fault::none>
class ThreadTeam {
 public:
  ThreadTeam(const Shape& shape, uint32_t group, void* shared, Barrier& barrier, uint32_t thread)
      : shape_(shape), group_(group), shared_(shared), barrier_(&barrier), thread_(thread) {}

  [[nodiscard]] uint32_t group() const { return group_; }
  [[nodiscard]] uint32_t groups() const { return shape_.groups; }
  [[nodiscard]] uint32_t threads() const { return shape_.threads; }
  template <class Body>
  void each(const Body& body) {
    body(thread_);
    // The phase that encodes: the next one copies what other threads have encoded.
    if (phase_++ == 2 && fault == Fault::missing_barrier) return;
    barrier_->arrive_and_wait();
  }
  template <class T>
  [[nodiscard]] T* shared() const {
    return static_cast<T*>(shared_);
  }
  void store_release(uint32_t* flag, uint32_t value) {
    __atomic_store_n(flag, value, fault == Fault::relaxed_flag ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
  }
  [[nodiscard]] uint32_t load_acquire(const uint32_t* flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
  void pause() { std::this_thread::yield(); }

 private:
  Shape shape_;
  uint32_t group_;
  void* shared_;
  Barrier* barrier_;
  uint32_t thread_;
  uint32_t phase_ = 0;
};

// The windows of all ranks, whose groups have met `met` times.
class Windows {
 public:
  Windows(uint32_t ranks, uint32_t groups, uint32_t met) : layout_{ranks, groups} {
    for (uint32_t r = 0; r < ranks; ++r) {
      memory_.emplace_back(layout_.bytes() / sizeof(Wide));
      fill(reinterpret_cast<unsigned char*>(memory_.back().data()), layout_, met);
    }
  }
  static void fill(unsigned char* window, const WindowLayout& layout, uint32_t met) {
    for (uint64_t i = 0; i < layout.control_bytes() / 4; ++i)
      reinterpret_cast<uint32_t*>(window)[i] = i < 2 * layout.groups && i % 2 == 1 ? 0 : met;
  }
  [[nodiscard]] unsigned char* of(uint32_t rank) { return reinterpret_cast<unsigned char*>(memory_[rank].data()); }
  [[nodiscard]] const WindowLayout& layout() const { return layout_; }
  [[nodiscard]] AllReduceArguments arguments(uint32_t rank) {
    AllReduceArguments arguments{};
    for (uint32_t r = 0; r < layout_.ranks; ++r) arguments.windows[r] = of(r);
    arguments.rank = rank;
    arguments.ranks = layout_.ranks;
    arguments.window_groups = layout_.groups;
    arguments.tiles = most_tiles;
    return arguments;
  }

 private:
  WindowLayout layout_;
  std::vector<std::vector<Wide>> memory_;
};

// Runs `launches` all-reduces on 2 ranks of 2 groups of 4 threads, each of which is a thread, and returns whether the
// sums of the numbers, which the format keeps, are right.
template <template <class> class Steps, Fault fault>
bool reduce_on_threads(uint32_t launches, uint32_t shots) {
  constexpr uint32_t ranks = 2;
  constexpr uint64_t count = 5 * tile_numbers;
  const Shape shape{2, 4, all_reduce_shared_bytes};
  Windows windows(ranks, shape.groups, 0xfffffffd);
  std::vector<float> sources[ranks];
  std::vector<float> targets[ranks];
  std::vector<Wide> shared[ranks * 2];
  std::deque<Barrier> barriers;
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) {
    sources[r].assign(count, static_cast<float>(1 + r));
    targets[r].assign(count, 0);
    for (uint32_t g = 0; g < shape.groups; ++g) {
      shared[2 * r + g].resize(shape.shared_bytes / sizeof(Wide) + 1);
      barriers.emplace_back(shape.threads);
    }
  }
  for (uint32_t i = 0; i < ranks * shape.groups * shape.threads; ++i) {
    threads.emplace_back([&, r = i / 8, g = i / 4 % 2, thread = i % 4] {
      AllReduceArguments arguments = windows.arguments(r);
      arguments.source = sources[r].data();
      arguments.target = targets[r].data();
      arguments.count = count;
      arguments.tiles = 1;
      arguments.shots = shots;
      for (uint32_t n = 0; n < launches; ++n) {
        ThreadTeam<fault> team(shape, g, shared[2 * r + g].data(), barriers[2 * r + g], thread);
        all_reduce<Steps>(team, arguments);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<float> expected(count, 3);
  return targets[0] == expected && targets[1] == expected;
}

// The same for plans: 2 ranks of 2 groups of 4 threads send each other `runs` messages, whose numbers change from run
// to run, and return whether they arrive.
template <Fault fault>
bool move_on_threads(uint32_t runs) {
  constexpr uint64_t count = 512;
  constexpr uint64_t bytes = count * sizeof(uint32_t);
  struct Rank {
    std::vector<uint32_t> sent = std::vector<uint32_t>(count), received = std::vector<uint32_t>(count);
    std::vector<Wide> wire = std::vector<Wide>(2 * bytes / sizeof(Wide));  // of what arrives
    uint32_t arrived[2] = {}, unpacked[2] = {}, counted[4] = {};           // of every group
    SlicePiece pieces[2];
    SliceMessage messages[2];
    uint32_t shared[2][6];
    bool right = true;
  };
  Rank ranks[2];
  uint32_t stop[2] = {};
  for (Rank& one : ranks) {
    Rank& other = &one == ranks ? ranks[1] : ranks[0];
    auto* const sent = reinterpret_cast<unsigned char*>(one.sent.data());
    auto* const received = reinterpret_cast<unsigned char*>(one.received.data());
    one.pieces[0] = {sent, 0, count, no_list, {count}, {4}, 1, 4};
    one.pieces[1] = {received, 0, count, no_list, {count}, {4}, 1, 4};
    one.messages[0] = {
        reinterpret_cast<unsigned char*>(other.wire.data()), bytes, bytes / 2, 0, 1, one.unpacked, other.arrived};
    one.messages[1] = {
        reinterpret_cast<unsigned char*>(one.wire.data()), bytes, bytes / 2, 1, 1, one.arrived, other.unpacked};
  }
  std::deque<Barrier> barriers;
  std::deque<Barrier> ends;  // of the launches of a rank
  for (uint32_t i = 0; i < 4; ++i) barriers.emplace_back(4);
  for (uint32_t i = 0; i < 2; ++i) ends.emplace_back(8);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 16; ++i) {
    threads.emplace_back([&, r = i / 8, g = i / 4 % 2, thread = i % 4] {
      Rank& own = ranks[r];
      const auto launch = [&](uint32_t packs) {
        ThreadTeam<fault> team({2, 4, slice_shared_bytes(4)}, g, own.shared[g], barriers[2 * r + g], thread);
        move_slices(team, {own.messages + 1 - packs, own.pieces, nullptr, own.counted, stop, 1, packs, 1 - packs, 0});
        ends[r].arrive_and_wait();
      };
      for (uint32_t n = 0; n < runs; ++n) {
        const bool leads = g == 0 && thread == 0;
        if (leads) own.sent.assign(count, 10 * n + r);
        ends[r].arrive_and_wait();
        launch(1);
        launch(0);
        if (leads) own.right = own.right && own.received == std::vector<uint32_t>(count, 10 * n + 1 - r);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks[0].right && ranks[1].right;
}

}  // namespace onehop::device::testing
