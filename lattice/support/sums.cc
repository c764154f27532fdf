#include "lattice/support/sums.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "onehop/patterns.h"
#include "src/base/clock.h"

namespace onehop::lattice::detail {

namespace {

// Adds the seconds between its construction and destruction.
class Clock {
 public:
  explicit Clock(double& seconds) : seconds_(seconds), begin_(base::steady_seconds()) {}
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() { seconds_ += base::steady_seconds() - begin_; }

 private:
  double& seconds_;
  double begin_;
};

}  // namespace

Sums::Sums(const Group& group, int capacity, bool wide, std::function<void(std::span<double>)> other)
    : rank_(group.rank()), ranks_(group.size()), capacity_(capacity), wide_(wide), other_(std::move(other)) {
  if (ranks_ == 1) return;
  const std::size_t block = static_cast<std::size_t>(capacity) * (wide ? sizeof(Superaccumulator) : sizeof(double));
  bytes_.resize(block * static_cast<std::size_t>(ranks_));
  const std::array arrays{std::span(bytes_)};
  gather_.emplace_back(group, allgather(ranks_, 1, static_cast<std::int64_t>(block), rank_), arrays);
}

void Sums::exchange() {
  const Clock clock(waited_);
  gather_[0].run();
}

void Sums::run(std::span<double> numbers) {
  assert(!wide_ && static_cast<int>(numbers.size()) <= capacity_);
  if (ranks_ == 1) return;
  if (other_) {
    const Clock clock(waited_);
    other_(numbers);
    return;
  }
  const std::size_t block = bytes_.size() / static_cast<std::size_t>(ranks_);
  std::memcpy(bytes_.data() + block * static_cast<std::size_t>(rank_), numbers.data(), numbers.size_bytes());
  exchange();
  std::ranges::fill(numbers, 0.0);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks_); ++rank) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      double theirs = 0;
      std::memcpy(&theirs, bytes_.data() + block * rank + i * sizeof(double), sizeof theirs);
      numbers[i] += theirs;
    }
  }
}

void Sums::run(std::span<const Superaccumulator> mine, std::span<double> results) {
  assert(wide_ && static_cast<int>(mine.size()) <= capacity_);
  if (ranks_ == 1) {
    for (std::size_t i = 0; i < mine.size(); ++i) results[i] = mine[i].value();
    return;
  }
  const std::size_t block = bytes_.size() / static_cast<std::size_t>(ranks_);
  std::memcpy(bytes_.data() + block * static_cast<std::size_t>(rank_), mine.data(), mine.size_bytes());
  exchange();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    Superaccumulator total;
    Superaccumulator theirs;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks_); ++rank) {
      std::memcpy(&theirs, bytes_.data() + block * rank + i * sizeof(Superaccumulator), sizeof theirs);
      total.add(theirs);
    }
    results[i] = total.value();
  }
}

}  // namespace onehop::lattice::detail
