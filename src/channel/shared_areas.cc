#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/staging.h"
#include "src/group/group_state.h"

namespace onehop {

namespace {

constexpr const char* area_name = "the memory from which the other ranks read";

// What a rank contributes; its error message follows if it has failed.
struct Offer {
  std::int32_t fd = -1;
  std::int32_t failed = 0;
  std::int64_t bytes = 0;
};

std::vector<std::byte> packed(const Offer& offer, const std::string& failure) {
  std::vector<std::byte> bytes(sizeof offer);
  std::memcpy(bytes.data(), &offer, sizeof offer);
  const auto rest = std::as_bytes(std::span<const char>(failure));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

[[noreturn]] void throw_failed(std::size_t rank, std::span<const std::byte> text) {
  throw Error("sharing memory failed on rank " + std::to_string(rank) + ": " +
              std::string(reinterpret_cast<const char*>(text.data()), text.size()));
}

}  // namespace

struct SharedAreas::Areas {
  std::vector<detail::SharedMemory> by_rank;
  int rank = 0;
};

SharedAreas::SharedAreas(const Group& group, std::int64_t bytes) {
  detail::GroupState& state = *group.state();
  auto areas = std::make_shared<Areas>();
  areas->rank = state.rank;
  areas->by_rank.resize(static_cast<std::size_t>(state.size));
  detail::SharedMemory& own = areas->by_rank[static_cast<std::size_t>(state.rank)];
  std::string failure;
  try {
    own = detail::SharedMemory::create_unbacked(bytes, area_name);
  } catch (const Error& error) {
    failure = error.what();
  }
  const Gathered all = state.allgather(packed({own.fd(), failure.empty() ? 0 : 1, bytes}, failure));
  std::vector<Offer> offers(all.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    Offer& offer = offers[r];
    if (all[r].size() < sizeof offer) {
      throw Mismatch("sharing memory: rank " + std::to_string(r) +
                     " is in another collective step; do all ranks make the same steps in the same order?");
    }
    std::memcpy(&offer, all[r].data(), sizeof offer);
    if (offer.failed != 0) throw_failed(r, std::span(all[r]).subspan(sizeof offer));
  }
  try {
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (static_cast<int>(r) == state.rank) continue;
      areas->by_rank[r] = detail::SharedMemory::open(state.pages[r].pid, offers[r].fd, offers[r].bytes);
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  // No rank continues, and perhaps ends, before all ranks have mapped everything.
  const Gathered failures = state.allgather(std::as_bytes(std::span<const char>(failure)));
  for (std::size_t r = 0; r < failures.size(); ++r) {
    if (failures[r].empty()) continue;
    state.throw_if_lost("sharing memory");
    throw_failed(r, failures[r]);
  }
  own_ = own.data();
  areas_ = std::move(areas);
}

const std::byte* SharedAreas::of(int rank) const noexcept {
  return areas_->by_rank[static_cast<std::size_t>(rank)].data();
}

std::int64_t SharedAreas::back() const {
  const detail::SharedMemory& own = areas_->by_rank[static_cast<std::size_t>(areas_->rank)];
  return own.back(area_name) ? own.bytes() : 0;
}

}  // namespace onehop
