// The nucleon of Wilson quarks.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace onehop::lattice {

// Returns the contraction of epsilon (u C gamma_5 d) u with the projector (1 + parity gamma_t) / 2 at each site. The
// columns of the propagators are those of [source spin][source colour][site][spin][colour]. Throws BadInput unless they
// are propagators.
[[nodiscard]] std::vector<std::complex<double>> nucleon(std::span<const std::complex<double>> columns, int parity);

}  // namespace onehop::lattice
