// The limit of what reads more than it computes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "field.h"
#include "team.h"

namespace onehop::bench {

// Reads all of it with several streams at once, as fast as it comes. Their sum.
[[nodiscard]] double read_all(const double* from, std::size_t count);

// Memory that all threads of a rank read.
class Reader {
 public:
  // The team must outlive it.
  Reader(std::int64_t bytes, lattice::detail::Team& team)
      : memory_(static_cast<std::size_t>(bytes) / sizeof(double)), team_(&team) {}

  [[nodiscard]] std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(memory_.size() * sizeof(double));
  }
  void read();

 private:
  lattice::detail::Buffer<double> memory_;
  lattice::detail::Team* team_;
  std::atomic<double> sum_{0};
};

}  // namespace onehop::bench
