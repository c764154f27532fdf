// The halo exchange of an operator's field: by plans, or by a replacement in benchmarks.
#pragma once

#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include "lattice/geometry/field.h"
#include "onehop/codec.h"
#include "onehop/group.h"
#include "onehop/plan.h"

namespace onehop::lattice::detail {

class FaceExchange {
 public:
  virtual ~FaceExchange() = default;
  // Exchange the faces of one global parity. They must not be written between start() and finish(), which completes the
  // ghosts.
  virtual void start(int parity) = 0;
  virtual void finish(int parity) = 0;
};

// One plan per parity. A codec other than `raw` needs a field in single precision.
class PlanExchange final : public FaceExchange {
 public:
  // The field's memory must not move while this object lives. Collective.
  template <class Real>
  PlanExchange(const Group& group, const Geometry& geometry, Field<Real>& field, Codec codec) {
    constexpr ElementType type = std::is_same_v<Real, double> ? ElementType::float64 : ElementType::float32;
    const std::array arrays{std::as_writable_bytes(field.memory.span())};
    const auto bytes = static_cast<std::int64_t>(field.shape.element() * static_cast<std::int64_t>(sizeof(Real)));
    for (int parity = 0; parity < geometry.spec().parities; ++parity) {
      Schedule schedule = geometry.halo(bytes, type, parity, group.rank());
      for (Transfer& each : schedule.rounds[0].transfers) each.codec = codec;
      plans_.emplace_back(group, schedule, arrays);
    }
  }
  void start(int parity) override { plans_[static_cast<std::size_t>(parity)].start(); }
  void finish(int parity) override { plans_[static_cast<std::size_t>(parity)].finish(); }

 private:
  std::vector<Plan> plans_;
};

}  // namespace onehop::lattice::detail
