// Transports that make progress only while their library is called (MPI). A rank may send over such a transport and
// then wait for something else in shared memory, so every wait of a process drives all of them (Waiting).
#pragma once

#include <atomic>

namespace onehop::detail {

class Driven {
 public:
  Driven() = default;
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;

  // Lets the library progress without waiting. Errors are reported by the waits for the messages concerned.
  virtual void drive() noexcept = 0;

  // Drives one transport per call, in turn: those of the same library (one per group) progress each other's messages.
  // Returns whether there is any; if there is none, the call costs one load.
  static bool drive_any() noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    drive_next();
    return true;
  }
  [[nodiscard]] static bool exists() noexcept { return count_.load(std::memory_order_relaxed) != 0; }

 protected:
  // join() registers this object with drive_any(). The destructor of the implementing class must call leave().
  void join();
  void leave() noexcept;
  ~Driven() = default;

 private:
  static void drive_next() noexcept;
  static inline std::atomic<int> count_{0};
};

}  // namespace onehop::detail
