// Finds exact exchanges: two transfers between two different ranks, each of which writes exactly where the other reads.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "onehop/schedule.h"

namespace onehop::detail {

// Finds, among some transfers of a round, the one that forms an exact exchange with a given transfer.
class ExchangePartners {
 public:
  // The transfer must outlive the object and have elements.
  void add(const Transfer& transfer) { partners_.emplace(key(transfer.from, transfer.to), &transfer); }

  // Returns the transfer that writes exactly where `u` reads and reads exactly where `u` writes, or null. A local copy
  // has no partner: only two ranks can both read before the other writes.
  [[nodiscard]] const Transfer* of(const Transfer& u) const {
    if (u.from.rank == u.to.rank) return nullptr;
    const auto [begin, end] = partners_.equal_range(key(u.to, u.from));
    for (auto candidate = begin; candidate != end; ++candidate) {
      const Transfer& t = *candidate->second;
      if (t.from == u.to && t.to == u.from) return &t;
    }
    return nullptr;
  }

 private:
  static std::uint64_t first_element(const Slice& slice) {
    return static_cast<std::uint64_t>(slice.is_list() ? slice.indices().front() : slice.offset());
  }

  static std::uint64_t key(const Place& from, const Place& to) {
    std::uint64_t key = 0;
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(from.rank), static_cast<std::uint64_t>(from.array), first_element(from.slice),
          static_cast<std::uint64_t>(to.array), first_element(to.slice)}) {
      key = (key ^ part) * 0x9e3779b97f4a7c15U;
      key ^= key >> 29U;
    }
    return key;
  }

  std::unordered_multimap<std::uint64_t, const Transfer*> partners_;
};

}  // namespace onehop::detail
