// The library measures by itself, for `onehop tune` and `onehop tour` (measure/). Benchmarks use its names as their
// own.
#pragma once

#include "measure/rounds.h"

namespace onehop::bench {

using namespace measure;  // NOLINT(google-build-using-namespace)

}  // namespace onehop::bench
