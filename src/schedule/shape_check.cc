#include "src/schedule/shape_check.h"

#include <algorithm>
#include <unordered_map>

#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::detail {

std::string array_problem(const ArraySpec& array, int ranks) {
  const auto found = [](std::int64_t value) { return ", found " + std::to_string(value); };
  const std::int64_t type_bytes = bytes_of(array.type);
  if (array.element_bytes < 1) return "expected element_bytes of 1 or more" + found(array.element_bytes);
  if (type_bytes != 0 && array.element_bytes % type_bytes != 0) {
    return "expected element_bytes of " + std::to_string(type_bytes) + ", or a multiple of it, for " +
           std::string(to_string(array.type)) + found(array.element_bytes);
  }
  if (array.elements.size() != 1 && array.elements.size() != static_cast<std::size_t>(ranks)) {
    return "expected one number of elements, or one for each of the " + base::counted(ranks, "rank") + ", found " +
           base::counted(array.elements.size(), "number");
  }
  for (const std::int64_t elements : array.elements) {
    if (elements < 0) return "expected 0 elements or more" + found(elements);
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, array.element_bytes, &bytes)) {
      return "expected fewer than 2^63 bytes" + found(elements) + " elements of " +
             base::counted(array.element_bytes, "byte");
    }
  }
  return {};
}

std::string place_problem(const Schedule& schedule, const Place& place) {
  if (place.rank < 0 || place.rank >= schedule.ranks) {
    return "expected a rank from 0 to " + std::to_string(schedule.ranks - 1) + ", found " + std::to_string(place.rank);
  }
  if (place.array < 0 || static_cast<std::size_t>(place.array) >= schedule.arrays.size()) {
    return "expected an array from 0 to " + std::to_string(static_cast<int>(schedule.arrays.size()) - 1) + ", found " +
           std::to_string(place.array);
  }
  const ArraySpec& array = schedule.arrays[static_cast<std::size_t>(place.array)];
  const auto [first, last] = place.slice.bounds();
  if (last > array.elements_on(place.rank)) {
    return "expected elements below " + std::to_string(array.elements_on(place.rank)) + ", which is the length of " +
           "array " + array.name + " on rank " + std::to_string(place.rank) + ", found element " +
           std::to_string(last - 1);
  }
  return {};
}

std::string transfer_problem(const Schedule& schedule, const Transfer& transfer) {
  if (const auto problem = place_problem(schedule, transfer.from); !problem.empty()) return "from: " + problem;
  if (const auto problem = place_problem(schedule, transfer.to); !problem.empty()) return "to: " + problem;
  const std::int64_t sent = transfer.from.slice.elements();
  const std::int64_t taken = transfer.to.slice.elements();
  if (sent != taken) {
    return "expected ends of equal size, found " + base::counted(sent, "element") + " from and " +
           std::to_string(taken) + " to";
  }
  const ArraySpec& from = schedule.arrays[static_cast<std::size_t>(transfer.from.array)];
  const ArraySpec& to = schedule.arrays[static_cast<std::size_t>(transfer.to.array)];
  if (from.element_bytes != to.element_bytes) {
    return "expected elements of equal size, found " + base::counted(from.element_bytes, "byte") + " in array " +
           from.name + " and " + std::to_string(to.element_bytes) + " in array " + to.name;
  }
  if (transfer.codec != Codec::raw && (from.type != to.type || !takes(transfer.codec, to.type))) {
    return "expected two arrays of the same type, float32, float64, float16 or bfloat16, for codec " +
           std::string(to_string(transfer.codec)) + ", found " + std::string(to_string(from.type)) + " and " +
           std::string(to_string(to.type));
  }
  if (transfer.combine == Combine::replace) return {};
  if (from.type != to.type || to.type == ElementType::bytes) {
    return "expected two arrays of the same type other than bytes for combine " +
           std::string(to_string(transfer.combine)) + ", found " + std::string(to_string(from.type)) + " and " +
           std::string(to_string(to.type));
  }
  return {};
}

// A short schedule can name more elements than any bitmap can hold, so the cost is bounded before memory is used.
void check_cost(const Schedule& schedule) {
  constexpr std::int64_t max_bytes = std::int64_t{1} << 32U;
  constexpr std::int64_t max_pieces = std::int64_t{1} << 34U;
  std::unordered_map<int, std::int64_t> bytes;
  std::int64_t total_pieces = 0;
  const auto fits = [&](const Place& place) {
    const auto [first, last] = place.slice.bounds();
    const std::int64_t pieces = std::min(place.slice.pieces(), max_pieces);
    // Each piece may touch a page of the bitmap of its own, but all together at most the pages between their ends.
    std::int64_t& rank_bytes = bytes[place.rank];
    rank_bytes += std::min((last - first) / 8, place.slice.elements() / 8 + pieces * 4096) + 1;
    total_pieces += place.slice.elements() / 64 + pieces;
    return rank_bytes <= max_bytes && total_pieces <= max_pieces;
  };
  const auto refuse = [&](const std::string& where) {
    throw BadInput("verify: expected at most " + std::to_string(max_bytes * 8) + " elements written on a rank and " +
                   std::to_string(max_pieces) + " pieces in total, found more up to " + where +
                   ": verify the same pattern on smaller arrays");
  };
  for (int r = 0; r < static_cast<int>(schedule.rounds.size()); ++r) {
    const auto& transfers = schedule.rounds[static_cast<std::size_t>(r)].transfers;
    for (int t = 0; t < static_cast<int>(transfers.size()); ++t) {
      if (!fits(transfers[static_cast<std::size_t>(t)].to)) refuse(describe(schedule, r, t));
    }
  }
  for (std::size_t i = 0; i < schedule.must_cover.size(); ++i) {
    if (!fits(schedule.must_cover[i])) refuse("must_cover[" + std::to_string(i) + "]");
  }
}

}  // namespace onehop::detail
