#include "onehop/gathered.h"

#include <algorithm>
#include <string>
#include <utility>

#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop {

Gathered::Gathered(std::span<const std::vector<std::byte>> contributions) {
  auto block = std::make_shared<Block>();
  std::size_t total = 0;
  block->ends.reserve(contributions.size());
  for (const auto& one : contributions) block->ends.push_back(total += one.size());
  block->bytes.reserve(total);
  for (const auto& one : contributions) block->bytes.insert(block->bytes.end(), one.begin(), one.end());
  block_ = std::move(block);
}

Gathered::Gathered(const std::vector<std::vector<std::byte>>& contributions) : Gathered(std::span(contributions)) {}

Gathered::Gathered(std::initializer_list<std::vector<std::byte>> contributions)
    : Gathered(std::span(contributions.begin(), contributions.size())) {}

Gathered::Gathered(std::vector<std::byte> bytes, std::vector<std::size_t> ends) {
  if (!std::ranges::is_sorted(ends) || (ends.empty() ? 0 : ends.back()) != bytes.size()) {
    throw BadInput("Gathered: expected ends that ascend to the number of bytes, " + std::to_string(bytes.size()));
  }
  block_ = std::make_shared<Block>(Block{std::move(bytes), std::move(ends)});
}

Gathered Gathered::without_first(std::size_t bytes) const {
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if ((*this)[rank].size() >= bytes) continue;
    throw BadInput("Gathered: expected " + base::counted(static_cast<std::int64_t>(bytes), "byte") +
                   " or more from rank " + std::to_string(rank) + ", found " + std::to_string((*this)[rank].size()));
  }
  Gathered rest = *this;
  rest.skipped_ += bytes;
  return rest;
}

}  // namespace onehop
