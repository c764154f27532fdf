#include "src/plan/guard/guard.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/group/shared_memory.h"
#include "src/schedule/element_set.h"

namespace onehop::detail {
namespace {

// The elements of each array that a part of the schedule reads or writes.
class Elements {
 public:
  explicit Elements(const Schedule& schedule, int rank) : schedule_(schedule), rank_(rank) {}

  void insert(const Place& place) {
    const ArraySpec& spec = schedule_.arrays[static_cast<std::size_t>(place.array)];
    sets_.try_emplace(place.array, spec.elements_on(rank_)).first->second.insert(place.slice);
  }
  [[nodiscard]] bool has(int array, std::int64_t element) {
    const auto found = sets_.find(array);
    return found != sets_.end() && found->second.first_inside(Slice::range(element, 1)) != ElementSet::none;
  }

 private:
  const Schedule& schedule_;
  int rank_;
  std::map<int, ElementSet> sets_;
};

bool before(const MemoryRange& a, const MemoryRange& b) noexcept { return a.begin < b.begin; }

}  // namespace

std::unique_ptr<Guard> Guard::make(const Schedule& schedule, std::span<const std::span<std::byte>> arrays, int rank) {
  if (env::number("ONEHOP_GUARD").value_or(0) == 0) return nullptr;
  return std::unique_ptr<Guard>(new Guard(schedule, arrays, rank));
}

Guard::Guard(const Schedule& schedule, std::span<const std::span<std::byte>> arrays, int rank)
    : plan_(schedule.name), specs_(schedule.arrays) {
  Elements written(schedule, rank);
  Elements read_first(schedule, rank);
  for (const Round& round : schedule.rounds) {
    for (const Transfer& transfer : round.transfers) {
      if (transfer.to.rank == rank) written.insert(transfer.to);
      if (transfer.from.rank == rank && &round == &schedule.rounds.front()) read_first.insert(transfer.from);
    }
  }
  for (const auto& array : arrays) arrays_.push_back(array.data());

  // One entry for each run of elements; those that are both read and written count as written.
  const auto add = [&](const Place& place, bool writes) {
    const auto a = static_cast<std::size_t>(place.array);
    const std::int64_t element_bytes = specs_[a].element_bytes;
    place.slice.for_each_run([&](std::int64_t begin, std::int64_t count) {
      for (std::int64_t i = begin; i < begin + count; ++i) {
        if (!writes && written.has(place.array, i)) continue;
        std::byte* const at = arrays_[a] + i * element_bytes;
        if (!bytes_.empty() && bytes_.back().range.end == at && bytes_.back().array == place.array &&
            bytes_.back().written == writes) {
          bytes_.back().range.end += element_bytes;
        } else {
          bytes_.push_back({{at, at + element_bytes}, place.array, writes});
        }
      }
    });
  };
  for (const Round& round : schedule.rounds) {
    const bool first = &round == &schedule.rounds.front();
    for (const Transfer& transfer : round.transfers) {
      if (transfer.from.rank == rank) add(transfer.from, false);
      if (transfer.to.rank != rank) continue;
      add(transfer.to, true);
      if (!first || transfer.combine != Combine::replace) continue;
      const auto a = static_cast<std::size_t>(transfer.to.array);
      const std::int64_t element_bytes = specs_[a].element_bytes;
      transfer.to.slice.for_each_run([&](std::int64_t begin, std::int64_t count) {
        for (std::int64_t i = begin; i < begin + count; ++i) {
          if (read_first.has(transfer.to.array, i)) continue;
          std::byte* const at = arrays_[a] + i * element_bytes;
          poisoned_.push_back({at, at + element_bytes});
        }
      });
    }
  }
  // Several transfers may read the same elements: each byte stays in one entry.
  std::ranges::stable_sort(bytes_, [](const Bytes& a, const Bytes& b) { return before(a.range, b.range); });
  std::vector<Bytes> apart;
  for (Bytes one : bytes_) {
    if (!apart.empty()) one.range.begin = std::max(one.range.begin, apart.back().range.end);
    if (one.range.begin < one.range.end) apart.push_back(one);
  }
  bytes_ = std::move(apart);

  std::size_t total = 0;
  std::vector<MemoryRange> ghosts;
  for (const Bytes& one : bytes_) {
    total += static_cast<std::size_t>(one.range.end - one.range.begin);
    if (one.written) ghosts.push_back(one.range);
  }
  copy_.resize(total);
  // Pages of shared memory hold nothing but arrays; pages of other memory may hold more, if they are not whole.
  std::vector<MemoryRange> inside;
  for (const auto& array : arrays) {
    const SharedMemory shared = SharedMemory::holding(array);
    std::byte* const begin = shared.data() != nullptr ? shared.data() : array.data();
    const auto length = shared.data() != nullptr ? static_cast<std::size_t>(shared.bytes()) : array.size();
    if (length > 0) inside.push_back({begin, begin + length});
  }
  std::ranges::sort(inside, before);
  pages_ = std::make_unique<PageGuard>(std::move(ghosts), inside);
}

void Guard::begins() noexcept {
  for (const MemoryRange& range : poisoned_) {
    std::memset(range.begin, 0xff, static_cast<std::size_t>(range.end - range.begin));
  }
}

void Guard::close() {
  std::byte* to = copy_.data();
  for (const Bytes& one : bytes_) to = std::copy(one.range.begin, one.range.end, to);
  pages_->close();
  closed_ = true;
}

void Guard::open() {
  if (!closed_) return;
  closed_ = false;
  pages_->open();
  const PageGuard::Access access = pages_->take_access();
  if (!violation_.empty()) return;
  if (access.at != nullptr) {
    violation_ = describe(access.at, access.writes);
    return;
  }
  const std::byte* from = copy_.data();
  for (const Bytes& one : bytes_) {
    const auto [found, copied] = std::mismatch(one.range.begin, one.range.end, from);
    if (found != one.range.end) {
      violation_ = describe(found, true);
      return;
    }
    from += one.range.end - one.range.begin;
  }
}

std::string Guard::describe(const std::byte* at, bool changed) const {
  const auto after =
      std::ranges::upper_bound(bytes_, at, {}, [](const Bytes& one) -> const std::byte* { return one.range.begin; });
  const Bytes& one = *std::prev(after);
  const auto a = static_cast<std::size_t>(one.array);
  const std::int64_t element = (at - arrays_[a]) / specs_[a].element_bytes;
  return "plan '" + plan_ + "': the program " + (changed ? "wrote" : "read") + " element " + std::to_string(element) +
         " of array " + std::to_string(one.array) + " ('" + specs_[a].name + "') between start() and finish(), and " +
         (one.written ? "the exchange writes it meanwhile; access it before start() or after finish()"
                      : "the exchange reads it meanwhile; write it before start() or after finish()");
}

void Guard::report() {
  if (violation_.empty()) return;
  const std::string found = std::move(violation_);
  violation_.clear();
  throw BadInput(found);
}

}  // namespace onehop::detail
