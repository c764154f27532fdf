// The halo exchange of an operator's field: by plans, or by a replacement in benchmarks.
#pragma once

#include <utility>

#include "lattice/geometry/field.h"

namespace onehop::lattice::detail {

class FaceExchange {
 public:
  virtual ~FaceExchange() = default;
  // Exchange the faces of one global parity. They must not be written between start() and finish(), which completes the
  // ghosts.
  virtual void start(int parity) = 0;
  virtual void finish(int parity) = 0;
};

class PlanExchange final : public FaceExchange {
 public:
  explicit PlanExchange(Faces faces) : faces_(std::move(faces)) {}
  void start(int parity) override { faces_.parity(parity).start(); }
  void finish(int parity) override { faces_.parity(parity).finish(); }

 private:
  Faces faces_;
};

}  // namespace onehop::lattice::detail
