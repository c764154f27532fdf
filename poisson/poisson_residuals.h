// The residuals of a solve: their sums over the ranks, its history and its end.
#pragma once

#include <cmath>
#include <cstdint>

#include "onehop/poisson/poisson.h"
#include "poisson/poisson_sum.h"
#include "src/base/clock.h"

namespace onehop::poisson::detail {

// Sends and receives the sums of a solve one after the other: fills its history, says whether it has ended, reports
// progress. The sum of an iteration travels with the faces of the next one.
class Residuals {
 public:
  Residuals(PoissonExchange& exchange, SumScale& scale, const PoissonControl& control, PoissonResult& result)
      : exchange_(exchange), scale_(scale), control_(control), result_(result) {}

  // Keeps this rank's part of the sum of an iteration.
  void keep(std::int64_t iteration, double mine) {
    pending_ = iteration;
    mine_ = mine;
  }
  [[nodiscard]] bool is_pending() const { return pending_ >= 0; }
  void start_faces() { is_pending() ? exchange_.start_with_sum(mine_) : exchange_.start(); }
  void finish_faces() {
    if (is_pending()) {
      sum_ = exchange_.finish_with_sum();
    } else {
      exchange_.finish();
    }
  }
  // Takes the sum that came with the faces, if there was one.
  void take() {
    if (is_pending()) know(sum_);
  }
  // Exchanges the sum that is kept, if there is one, without faces.
  void finish() {
    if (!is_pending()) return;
    exchange_.start_sum(mine_);
    know(exchange_.finish_sum());
  }

 private:
  void know(double sum) {
    scale_.know(pending_, sum);
    result_.history.push_back({pending_, std::sqrt(sum)});
    pending_ = -1;
    const double norm = result_.history.back().norm;
    result_.reached_tolerance = control_.tolerance > 0 && norm <= control_.tolerance * result_.history.front().norm;
    if (control_.progress && base::steady_seconds() - told_ > 0.1) {
      control_.progress(result_.history.back());
      told_ = base::steady_seconds();
    }
  }

  PoissonExchange& exchange_;
  SumScale& scale_;
  const PoissonControl& control_;
  PoissonResult& result_;
  std::int64_t pending_ = -1;  // the iteration whose sum is not known yet
  double mine_ = 0;            // this rank's part of it
  double sum_ = 0;             // the whole, when it has come with faces
  double told_ = 0;            // when progress was reported last
};

}  // namespace onehop::poisson::detail
