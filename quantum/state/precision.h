// The precisions of a state, and templates by them.
#pragma once

#include <string_view>
#include <utility>

#include "onehop/codec.h"
#include "onehop/quantum/state.h"

namespace onehop::quantum {

// The codec of an encoded state.
[[nodiscard]] Codec codec_of(Precision precision);

// Throws BadInput, which names what was asked for, if the precision is an encoded one.
void require_plain(Precision precision, std::string_view what);

// Calls function<float>() or function<double>(). Encoded amplitudes are worked on in single precision.
template <typename Function>
decltype(auto) with_type(Precision precision, Function&& function) {
  if (precision == Precision::double_precision) return std::forward<Function>(function).template operator()<double>();
  return std::forward<Function>(function).template operator()<float>();
}

}  // namespace onehop::quantum
