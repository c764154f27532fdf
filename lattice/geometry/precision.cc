#include "onehop/lattice/precision.h"

#include <string>

#include "onehop/error.h"

namespace onehop::lattice {

Precision precision_from_string(std::string_view name) {
  for (const Precision each : {Precision::half, Precision::single, Precision::double_}) {
    if (name == to_string(each)) return each;
  }
  throw BadInput("expected a precision of half, single or double, found '" + std::string(name) + "'");
}

std::string_view to_string(Precision precision) {
  if (precision == Precision::half) return "half";
  return precision == Precision::single ? "single" : "double";
}

}  // namespace onehop::lattice
