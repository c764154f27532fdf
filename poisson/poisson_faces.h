// The layout of a block's faces in the arrays of `poisson_faces`, and the solver's own exchange.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "onehop/poisson/poisson.h"

namespace onehop::poisson::detail {

struct FaceLayout {
  std::array<std::int64_t, 4> offset{};  // below and above in dimension 0, below and above in dimension 1
  std::array<std::int64_t, 4> sites{};
  std::int64_t elements = 0;  // of the whole array
};
[[nodiscard]] FaceLayout face_layout(const PoissonBlock& block, std::int64_t enlargement);

// Memory that begins at a cache line, zeroed.
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(std::int64_t elements);
  [[nodiscard]] double* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept;

 private:
  struct Free {
    void operator()(double* memory) const noexcept;
  };
  std::unique_ptr<double[], Free> data_;
  std::int64_t elements_ = 0;
};

// Plans for the faces, for the sums, and for both in the same messages. Collective.
[[nodiscard]] std::unique_ptr<PoissonExchange> plan_exchange(const Group& group, const Schedule& faces,
                                                             std::span<const std::span<std::byte>> arrays,
                                                             const PoissonOptions& options);

}  // namespace onehop::poisson::detail
