// Spreads the failure of one rank in a collective step to all ranks, so that no rank waits for one that has thrown.
#pragma once

#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "src/group/group_state.h"

namespace onehop::detail {

// Returns the message of an exception.
[[nodiscard]] std::string message_of(const std::exception_ptr& error);

// Takes a step that may fail on one rank, and returns what it throws, or null.
template <class Step>
[[nodiscard]] std::exception_ptr failure_of(const Step& step) {
  try {
    step();
  } catch (const std::exception&) {
    return std::current_exception();
  }
  return nullptr;
}

// Throws for a step that failed on `rank` with the message `failure`: PeerLost if a rank has died, because that is why,
// else Error.
[[noreturn]] void throw_failed(GroupState& group, const std::string& step, std::size_t rank,
                               std::span<const std::byte> failure);

// Collective. `own` is this rank's failure in `step`, or null. Rethrows `own` if it is set; else throws as
// throw_failed() for the first rank that failed, if any did.
void agree(GroupState& group, const std::string& step, const std::exception_ptr& own);

// Collective. The same for a failure that is a text, empty if there is none, in a step that may fail because a rank has
// ended: throws PeerLost if one has, else Error on every rank.
void agree_or_lost(GroupState& group, const std::string& step, const std::string& failure);

// Collective. Returns the bytes that every rank offers, all of the same length. Throws Error on every rank if `failure`
// is not empty on any, and Mismatch if a rank is in another step.
[[nodiscard]] std::vector<std::vector<std::byte>> gather_offers(GroupState& group, const std::string& step,
                                                                std::span<const std::byte> own,
                                                                const std::string& failure);
template <class Offer>
[[nodiscard]] std::vector<Offer> gather_offers(GroupState& group, const std::string& step, const Offer& own,
                                               const std::string& failure) {
  static_assert(std::is_trivially_copyable_v<Offer>);
  std::vector<Offer> offers;
  for (const auto& bytes : gather_offers(group, step, bytes_of(own), failure))
    std::memcpy(&offers.emplace_back(), bytes.data(), sizeof(Offer));
  return offers;
}

}  // namespace onehop::detail
