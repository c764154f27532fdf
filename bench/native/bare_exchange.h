// The speed of light of an exchange between two ranks: copies from the arrays into slots in shared memory, one flag,
// and copies from the slots into the arrays, without any library. Like speed_of_light.h it shares no code with onehop's
// channels and plans.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/native/packing_lines.h"
#include "onehop/group.h"
#include "onehop/schedule.h"
#include "src/group/shared_memory.h"

namespace onehop::bench {

// How a rank copies into its peer's slots.
struct BareCopy {
  std::string name;
  PackingLines::CopyFunction copy = nullptr;
};
[[nodiscard]] std::vector<BareCopy> bare_copies();

// The first round of a schedule of two ranks, with two slots each way in turn. Of pieces shorter than a line it only
// touches each line once (packing_lines.h).
class BareExchange {
 public:
  // Collective over the two ranks of `group`.
  BareExchange(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays);

  // Both ranks must switch between the same two exchanges.
  void use(PackingLines::CopyFunction copy) noexcept { copy_ = copy; }
  // Whether all data arrives, because no piece is shorter than a line.
  [[nodiscard]] bool moves_everything() const noexcept { return lines_[0].copies_everything(); }
  void run() noexcept;

 private:
  static std::atomic<std::uint64_t>& flag(std::byte* memory) noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory);
  }

  detail::SharedMemory own_memory_;
  detail::SharedMemory their_memory_;
  std::vector<PackingLines> lines_;  // one for each slot
  PackingLines::CopyFunction copy_ = nullptr;
  std::uint64_t exchanges_ = 0;
};

}  // namespace onehop::bench
