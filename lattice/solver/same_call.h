// Compares the arguments of functions of fields between ranks.
#pragma once

#include <complex>
#include <initializer_list>
#include <span>

#include "onehop/lattice/solver.h"
#include "src/group/require_same.h"

namespace onehop::lattice::detail {

// Throws Mismatch on every rank unless all have fields of one size, the same arguments, and the same options of a solve
// if there are any. Collective.
void require_same(const Group& group, const char* function, std::span<const std::complex<double>> fields,
                  std::initializer_list<onehop::detail::Argument> arguments, const SolverOptions* options = nullptr);

}  // namespace onehop::lattice::detail
