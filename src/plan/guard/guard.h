// Watches, in a program that is being debugged (ONEHOP_GUARD=1), the slices of a plan between start() and finish(): the
// program may not access those that the schedule writes, nor change those that it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onehop/schedule.h"
#include "src/plan/guard/page_guard.h"
#include "src/plan/program/plan_watch.h"

namespace onehop::detail {

class Guard final : public PlanWatch {
 public:
  // Null unless the environment asks for guards. `arrays` are those of `rank`.
  static std::unique_ptr<Guard> make(const Schedule& schedule, std::span<const std::span<std::byte>> arrays, int rank);

  // Fills what the first round overwrites with ones, in all types of floating-point numbers a NaN, so that results show
  // that it was read. Call it before a run begins.
  void begins() noexcept override;
  // Nothing but the program may touch the arrays until open().
  void close() override;
  void open() override;
  // Throws BadInput about the first wrong access of the run, if there was one.
  void report() override;

 private:
  Guard(const Schedule& schedule, std::span<const std::span<std::byte>> arrays, int rank);

  struct Bytes {
    MemoryRange range;
    int array = 0;
    bool written = false;  // by the schedule
  };
  [[nodiscard]] std::string describe(const std::byte* at, bool changed) const;

  std::string plan_;
  std::vector<ArraySpec> specs_;
  std::vector<std::byte*> arrays_;
  std::vector<Bytes> bytes_;  // in order of their addresses
  std::vector<MemoryRange> poisoned_;
  std::vector<std::byte> copy_;  // of all of bytes_, as start() or test() left them
  std::unique_ptr<PageGuard> pages_;
  bool closed_ = false;
  std::string violation_;
};

}  // namespace onehop::detail
