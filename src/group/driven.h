// Transports that make progress only while their library is called (MPI). A rank may give such a transport a message
// and then wait for something else in shared memory, so every wait of a process drives all of them (Waiting).
#pragma once

#include <atomic>

namespace onehop::detail {

class Driven {
 public:
  Driven() = default;
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;

  // Lets the library move what it can, without waiting. Errors are left to those who wait for the messages concerned.
  virtual void drive() noexcept = 0;

  // Drives what this process has to drive, one after the other, one a call: those of a library (one for each group) all
  // move what is under way in any of them. Whether there is any; where there is none, this costs one load.
  static bool drive_any() noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    drive_next();
    return true;
  }

 protected:
  // From the first call of join() until leave(), which the destructor of the class that implements drive() must call.
  void join();
  void leave() noexcept;
  virtual ~Driven() = default;

 private:
  static void drive_next() noexcept;
  static inline std::atomic<int> count_{0};
};

}  // namespace onehop::detail
