// Templates by the precision of a state.
#pragma once

#include <utility>

#include "onehop/quantum/state.h"

namespace onehop::quantum {

// Calls function<float>() or function<double>().
template <typename Function>
decltype(auto) with_type(Precision precision, Function&& function) {
  if (precision == Precision::single_precision) return std::forward<Function>(function).template operator()<float>();
  return std::forward<Function>(function).template operator()<double>();
}

}  // namespace onehop::quantum
