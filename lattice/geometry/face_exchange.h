// How the faces of an operator's field reach the ranks beside: by plans, or by whatever a benchmark puts in their place.
#pragma once

#include <utility>

#include "lattice/geometry/field.h"

namespace onehop::lattice::detail {

class FaceExchange {
 public:
  virtual ~FaceExchange() = default;
  // The faces of one colour of the whole lattice. Between the two they must not be written; after finish() the ghosts are there.
  virtual void start(int colour) = 0;
  virtual void finish(int colour) = 0;
};

class PlanExchange final : public FaceExchange {
 public:
  explicit PlanExchange(Faces faces) : faces_(std::move(faces)) {}
  void start(int colour) override { faces_.colour(colour).start(); }
  void finish(int colour) override { faces_.colour(colour).finish(); }

 private:
  Faces faces_;
};

}  // namespace onehop::lattice::detail
