// How the faces of an operator's field reach the ranks beside: by plans, or by whatever a benchmark puts in their place.
#pragma once

#include <utility>

#include "lattice/geometry/field.h"

namespace onehop::lattice::detail {

class FaceExchange {
 public:
  virtual ~FaceExchange() = default;
  // The faces of one parity of the whole lattice. Between the two they must not be written; after finish() the ghosts are there.
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
