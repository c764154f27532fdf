// All-reduces of arrays that lie in memory which all ranks share (Group::allocate): each rank reads its segment of
// every rank's source and writes the result into every rank's array, so that nothing passes through slots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "onehop/group.h"
#include "src/group/shared_place.h"

namespace onehop::collectives::detail {

// The places of a rank's source and result, which it tells the others in the header's line.
class PlacesOnWire {
 public:
  PlacesOnWire() = default;
  // None, if one of them has no place or one that does not fit.
  PlacesOnWire(const SharedPlace& source, const SharedPlace& result);

  [[nodiscard]] bool given() const noexcept { return words_[0] != 0; }
  [[nodiscard]] SharedPlace source() const noexcept { return place(0); }
  [[nodiscard]] SharedPlace result() const noexcept { return place(3); }

 private:
  // A descriptor has 16 bits, an offset 48.
  [[nodiscard]] SharedPlace place(std::size_t first) const noexcept;
  std::array<std::uint32_t, 6> words_{};
};
static_assert(sizeof(PlacesOnWire) == 24);

// Memory of the other ranks, mapped when it is first needed and kept for later operations.
class MappedArrays {
 public:
  explicit MappedArrays(int ranks) : of_rank_(static_cast<std::size_t>(ranks)) {}

  // The address of an array of another rank. Valid until the second next call with the same rank. Throws Error,
  // PeerLost.
  [[nodiscard]] std::byte* at(const Group& group, int rank, const SharedPlace& place, std::int64_t bytes);

 private:
  struct Known {
    std::uint32_t memory = 0;
    MappedMemory mapped;
  };
  std::vector<std::deque<Known>> of_rank_;  // the one used last comes first
};

}  // namespace onehop::collectives::detail
