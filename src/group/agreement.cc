#include "src/group/agreement.h"

#include "onehop/error.h"

namespace onehop::detail {
namespace {

Gathered gather_failures(GroupState& group, const std::string& own) {
  return group.allgather(std::as_bytes(std::span<const char>(own)));
}

}  // namespace

void throw_failed(GroupState& group, const std::string& step, std::size_t rank, std::span<const std::byte> failure) {
  group.throw_if_lost(step, 1);  // the failing rank saw the end before it failed
  throw Error(step + " failed on rank " + std::to_string(rank) + ": " +
              std::string(reinterpret_cast<const char*>(failure.data()), failure.size()));
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown exception";
  }
}

void agree(GroupState& group, const std::string& step, const std::exception_ptr& own) {
  const Gathered failures = gather_failures(group, own ? message_of(own) : std::string());
  if (own) std::rethrow_exception(own);
  for (std::size_t r = 0; r < failures.size(); ++r) {
    if (!failures[r].empty()) throw_failed(group, step, r, failures[r]);
  }
}

void agree_or_lost(GroupState& group, const std::string& step, const std::string& failure) {
  const Gathered failures = gather_failures(group, failure);
  for (std::size_t r = 0; r < failures.size(); ++r) {
    if (failures[r].empty()) continue;
    group.throw_if_lost(step);
    throw_failed(group, step, r, failures[r]);
  }
}

std::vector<std::vector<std::byte>> gather_offers(GroupState& group, const std::string& step,
                                                  std::span<const std::byte> own, const std::string& failure) {
  // The offer, whether the rank has failed, and its message.
  std::vector<std::byte> mine(own.begin(), own.end());
  mine.push_back(std::byte{!failure.empty()});
  const auto text = std::as_bytes(std::span<const char>(failure));
  mine.insert(mine.end(), text.begin(), text.end());
  const Gathered all = group.allgather(mine);
  std::vector<std::vector<std::byte>> offers;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::span<const std::byte> theirs = all[r];
    if (theirs.size() <= own.size()) {
      throw Mismatch(step + ": rank " + std::to_string(r) +
                     " is in another collective step; do all ranks make the same steps in the same order?");
    }
    if (theirs[own.size()] != std::byte{0}) throw_failed(group, step, r, theirs.subspan(own.size() + 1));
    offers.emplace_back(theirs.begin(), theirs.begin() + static_cast<std::ptrdiff_t>(own.size()));
  }
  return offers;
}

}  // namespace onehop::detail
