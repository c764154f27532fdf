#include "bench/native/face_clock.h"

#include <cstring>
#include <span>
#include <utility>

#include "bench/native/measure.h"

namespace onehop::bench {

void FaceClock::end_block() {
  const std::size_t applications = of_block_.size();
  if (applications > 0) blocks_.push_back({applications, median(std::exchange(of_block_, {}))});
}

std::vector<double> FaceClock::us(const Group& group) const {
  std::vector<double> mine;
  for (const Block& block : blocks_) {
    if (block.applications == blocks_.back().applications) mine.push_back(block.us);
  }
  std::vector<double> mean(mine.size());
  for (const auto& bytes : group.allgather(std::as_bytes(std::span<const double>(mine)))) {
    std::vector<double> theirs(mine.size());
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += theirs[i] / group.size();
  }
  return mean;
}

std::string faces_by_clocks(const std::string& variant) { return variant + ": faces, by clocks"; }

}  // namespace onehop::bench
