// An MPI-3 window for the candidates that put: a flag that the receiver polls, followed by the data.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "measure/mpi/context.h"
#include "src/base/cpu.h"

namespace onehop::bench {

enum class WindowKind { allocated, shared };

template <class Abi>
class MpiWindow {
 public:
  // Makes a window of `bytes` bytes and a flag on each of the two ranks. Collective.
  MpiWindow(const MpiContext<Abi>& context, WindowKind kind, std::int64_t bytes) : context_(context) {
    const auto& mpi = context.mpi;
    const auto size = static_cast<typename MpiCalls<Abi>::Aint>(flag_bytes + bytes);
    const auto info = context.api.handles.info_null;
    void* base = nullptr;
    if (kind == WindowKind::shared) {
      context.check(mpi.win_allocate_shared(size, 1, info, context.comm, static_cast<void*>(&base), &win_),
                    "MPI_Win_allocate_shared");
    } else {
      context.check(mpi.win_allocate(size, 1, info, context.comm, static_cast<void*>(&base), &win_),
                    "MPI_Win_allocate");
    }
    base_ = static_cast<std::byte*>(base);
    std::memset(base_, 0, static_cast<std::size_t>(size));
    context.check(mpi.win_lock_all(0, win_), "MPI_Win_lock_all");
    context.check(mpi.win_sync(win_), "MPI_Win_sync");
    context.check(mpi.barrier(context.comm), "MPI_Barrier");
  }
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;
  // Collective. After an exception on this rank the other one will not take part, so the window is left to MPI.
  ~MpiWindow() {
    if (!context_.running() || std::uncaught_exceptions() != 0) return;
    static_cast<void>(context_.mpi.win_unlock_all(win_));
    static_cast<void>(context_.mpi.win_free(&win_));
  }

  // The data that the peer has put.
  [[nodiscard]] std::byte* data() const noexcept { return base_ + flag_bytes; }

  void put(const std::byte* from, std::int64_t bytes, std::int64_t to) const {
    const int count = static_cast<int>(bytes);
    context_.check(
        context_.mpi.put(from, count, context_.byte, context_.peer, flag_bytes + to, count, context_.byte, win_),
        "MPI_Put");
  }
  void flush() const { context_.check(context_.mpi.win_flush(context_.peer, win_), "MPI_Win_flush"); }

  // Signals to the peer that the flushed data is complete.
  void raise_flag() {
    ++raised_;
    context_.check(context_.mpi.put(&raised_, 8, context_.byte, context_.peer, 0, 8, context_.byte, win_), "MPI_Put");
    flush();
  }
  // Waits until the peer raised its flag once more.
  void await_flag() {
    ++awaited_;
    // In shared memory, polling alone suffices and is fastest. An MPI that implements put by messages must be called
    // from time to time, and only a function that probes for messages makes every library progress; MPI_Win_sync does
    // not.
    constexpr int polls_between_calls = 64;
    const std::atomic_ref<std::uint64_t> flag(*reinterpret_cast<std::uint64_t*>(base_));
    for (int polls = 1; flag.load(std::memory_order_acquire) < awaited_; ++polls) {
      cpu::pause();
      if (polls % polls_between_calls != 0) continue;
      int found = 0;
      context_.check(context_.mpi.iprobe(context_.peer, 0, context_.comm, &found, context_.ignore()), "MPI_Iprobe");
      context_.check(context_.mpi.win_sync(win_), "MPI_Win_sync");
    }
    context_.check(context_.mpi.win_sync(win_), "MPI_Win_sync");
  }

 private:
  static constexpr std::int64_t flag_bytes = 128;
  const MpiContext<Abi>& context_;
  typename Abi::Win win_{};
  std::byte* base_ = nullptr;
  std::uint64_t raised_ = 0;
  std::uint64_t awaited_ = 0;
};

// Whether data that is put into windows arrives: with MPICH 4.0 over UCX (in Debian 12), some never does.
template <class Abi>
[[nodiscard]] bool windows_work(const MpiApi<Abi>& api) {
  return api.library.version().find("MPICH Version: 4.0.") == std::string::npos;
}

}  // namespace onehop::bench
