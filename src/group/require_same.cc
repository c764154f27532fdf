#include "src/group/require_same.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "src/base/one_size.h"
#include "src/group/group_state.h"

namespace onehop::detail {

// The number of characters of a value that an error quotes.
constexpr std::size_t longest = 200;

static std::string quoted(std::span<const std::byte> text) {
  return "'" + std::string(reinterpret_cast<const char*>(text.data()), text.size()) + "'";
}

void require_same(const Group& group, std::string_view function, std::span<const Argument> arguments) {
  if (group.size() == 1) return;
  std::vector<base::Key> mine{base::hash_of(function)};
  for (const Argument& argument : arguments) mine.push_back(argument.hash);
  const auto bytes = std::as_bytes(std::span(mine));
  const Gathered all = base::of_one_size(group.allgather(bytes), bytes.size());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto different = std::ranges::mismatch(all[rank], all[0]).in1 - all[rank].begin();
    if (different == std::ssize(all[rank])) continue;
    const auto place = static_cast<std::size_t>(different) / sizeof(base::Key);
    const std::string_view name = place == 0 ? "function" : arguments[place - 1].name;
    const std::string_view value = place == 0 ? function : arguments[place - 1].text;
    const std::string text(value.substr(0, longest));
    const Gathered texts = group.allgather(std::as_bytes(std::span(text)));
    const std::string other = " on rank " + std::to_string(rank);
    throw Mismatch(std::string(function) + ": expected the same " + std::string(name) + " on every rank, found " +
                   (value.empty() ? "another one" + other + " than on rank 0; random numbers need a common seed"
                                  : quoted(texts[0]) + " on rank 0 and " + quoted(texts[rank]) + other));
  }
}

Gathered allgather_same(const Group& group, std::string_view function, const Argument& argument,
                        std::span<const std::byte> mine) {
  const base::Key call = base::hash_of(function, argument.hash);
  std::vector<std::byte> bytes(sizeof call + mine.size());
  std::memcpy(bytes.data(), call.data(), sizeof call);
  std::ranges::copy(mine, bytes.begin() + sizeof call);
  const Gathered all = group.allgather(bytes);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (std::min(all[rank].size(), all[0].size()) < sizeof call) continue;
    if (std::ranges::equal(all[rank].first(sizeof call), all[0].first(sizeof call))) continue;
    throw Mismatch(std::string(function) + ": expected the same " + std::string(argument.name) +
                   " on every rank, found another call on rank " + std::to_string(rank) + " than on rank 0");
  }
  return base::of_one_size(all, bytes.size()).without_first(sizeof call);
}

void refuse(const Group& group, std::string_view text) noexcept { group.state()->refuse(text); }

}  // namespace onehop::detail
