// A kernel is a template over a team, the threads of one group, which work in phases:
//
//   template <class Team> void scale(Team& team, const ScaleArguments& arguments) {
//     for_each_index(team, arguments.count, [&](uint64_t i) { global(arguments.numbers)[i] *= arguments.factor; });
//   }
//
// `team.each(body)` calls body(thread) for every thread of the group; no thread goes on before all have returned. On a
// card a thread calls it for itself and waits at a barrier (CardTeam); on a processor a loop does (LoopTeam), so that
// kernels run, and sanitizers find their mistakes, without a card. What stands between two phases runs in every thread
// of a card: it may compute and branch on values that all threads of the group share, but must not write to memory.
//
// This header and those of kernels are also compiled for cards, without a standard library: they include nothing else,
// and use 64-bit indices. A kernel may be launched with any number of groups and threads that its header allows.
#pragma once

#include <stdint.h>  // NOLINT(modernize-deprecated-headers): <cstdint> is part of the standard library

#if defined(__NVPTX__) || defined(__AMDGCN__)
#define ONEHOP_CARD 1
#else
#include <sched.h>
#endif

namespace onehop::device {

// The size of a launch. A group of a kernel that uses shared memory has that many bytes of it.
struct Shape {
  uint32_t groups = 1;
  uint32_t threads = 1;
  uint32_t shared_bytes = 0;
};

#ifdef __AMDGCN__
// Tells the compiler that a pointer points to the memory of this card or another one, not to shared memory.
template <class T>
using Global = __attribute__((address_space(1))) T*;
#else
template <class T>
using Global = T*;
#endif
template <class T>
inline Global<T> global(T* pointer) {
  return (Global<T>)pointer;  // NOLINT: a cast between address spaces must be this one
}

// 16 bytes, the widest access of a card, if `word` is copied (the copy of a struct may become two accesses).
struct Wide {
  __attribute__((vector_size(16))) uint32_t word;
};

inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

#ifdef ONEHOP_CARD

extern "C" __attribute__((address_space(3), aligned(16))) unsigned char onehop_shared_memory[];

class CardTeam {
 public:
#ifdef __NVPTX__
  [[nodiscard]] uint32_t group() const { return __nvvm_read_ptx_sreg_ctaid_x(); }
  [[nodiscard]] uint32_t groups() const { return __nvvm_read_ptx_sreg_nctaid_x(); }
  [[nodiscard]] uint32_t threads() const { return __nvvm_read_ptx_sreg_ntid_x(); }

  template <class Body>
  void each(const Body& body) {
    body(__nvvm_read_ptx_sreg_tid_x());
    __syncthreads();
  }
#else
  [[nodiscard]] uint32_t group() const { return __builtin_amdgcn_workgroup_id_x(); }
  [[nodiscard]] uint32_t groups() const { return __builtin_amdgcn_grid_size_x() / threads(); }
  [[nodiscard]] uint32_t threads() const { return __builtin_amdgcn_workgroup_size_x(); }

  template <class Body>
  void each(const Body& body) {
    body(__builtin_amdgcn_workitem_id_x());
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    wait_for_memory();
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
#endif
  template <class T>
  [[nodiscard]] T* shared() const {
    return (T*)onehop_shared_memory;  // NOLINT: a cast between address spaces must be this one
  }
  // Flags between cards, and between a card and the processor. A flag also releases what other threads of the group
  // have written before a barrier.
#ifdef __AMDGCN__
  void store_release(uint32_t* flag, uint32_t value) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    wait_for_memory();
    __atomic_store_n(global(flag), value, __ATOMIC_RELAXED);
  }
#else
  void store_release(uint32_t* flag, uint32_t value) { __atomic_store_n(global(flag), value, __ATOMIC_RELEASE); }
#endif
  [[nodiscard]] uint32_t load_acquire(const uint32_t* flag) { return __atomic_load_n(global(flag), __ATOMIC_ACQUIRE); }
  // Between two looks at a flag.
  void pause() {}

#ifdef __AMDGCN__
 private:
  // Until the wave's writes are complete. The compiler leaves this out at barriers, after which a thread of another
  // wave could not release them, and behind the write-back of the cache that a release begins.
  static void wait_for_memory() { __builtin_amdgcn_s_waitcnt(0x0f70); }  // vmcnt(0)
#endif
};

#else

// One group on a processor. `seed` other than 0: the threads of every phase run in an order that depends on it, which
// finds phases that need the order 0, 1, 2, ...
class LoopTeam {
 public:
  LoopTeam(const Shape& shape, uint32_t group, void* shared, uint32_t seed = 0)
      : shape_(shape), group_(group), shared_(shared), seed_(seed) {}

  [[nodiscard]] uint32_t group() const { return group_; }
  [[nodiscard]] uint32_t groups() const { return shape_.groups; }
  [[nodiscard]] uint32_t threads() const { return shape_.threads; }

  template <class Body>
  void each(const Body& body) {
    if (seed_ == 0) {
      for (uint32_t thread = 0; thread < shape_.threads; ++thread) body(thread);
      return;
    }
    seed_ = seed_ * 1664525 + 1013904223;  // of Numerical Recipes; the upper bits are used
    uint64_t step = (seed_ >> 8) % shape_.threads + 1;
    while (divisor(step, shape_.threads) != 1) ++step;
    uint64_t thread = (seed_ >> 16) % shape_.threads;
    for (uint32_t i = 0; i < shape_.threads; ++i, thread = (thread + step) % shape_.threads) {
      body(static_cast<uint32_t>(thread));
    }
  }
  template <class T>
  [[nodiscard]] T* shared() const {
    return static_cast<T*>(shared_);
  }
  void store_release(uint32_t* flag, uint32_t value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }
  [[nodiscard]] uint32_t load_acquire(const uint32_t* flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
  void pause() { sched_yield(); }

 private:
  static uint64_t divisor(uint64_t a, uint64_t b) { return b == 0 ? a : divisor(b, a % b); }

  Shape shape_;
  uint32_t group_;
  void* shared_;
  uint32_t seed_;
};

#endif

// A phase in which the threads of all groups share the indices from 0 to count - 1.
template <class Team, class Body>
inline void for_each_index(Team& team, uint64_t count, const Body& body) {
  const uint64_t stride = uint64_t{team.groups()} * team.threads();
  team.each([&](uint32_t thread) {
    for (uint64_t i = uint64_t{team.group()} * team.threads() + thread; i < count; i += stride) body(i);
  });
}

}  // namespace onehop::device
