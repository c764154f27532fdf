// Fields that tests of lattice operators begin with.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "onehop/group.h"
#include "onehop/lattice/gauge.h"

namespace onehop::testing {

// A plane wave of so many complex numbers a site: they depend on the place in the whole lattice, so are the same on
// every grid of ranks.
inline std::vector<std::complex<double>> plane_wave(const lattice::Gauge& gauge, int numbers) {
  const lattice::Geometry& geometry = gauge.geometry();
  const auto origin = geometry.origin(gauge.group().rank());
  std::vector<std::complex<double>> field;
  for (std::int64_t site = 0; site < geometry.sites(); ++site) {
    std::int64_t rest = site;
    double phase = 0;
    for (std::size_t d = 0; d < origin.size(); ++d) {
      phase += static_cast<double>(d + 1) * static_cast<double>(origin[d] + rest % geometry.block()[d]);
      rest /= geometry.block()[d];
    }
    for (int c = 0; c < numbers; ++c) field.push_back(std::polar(1.0, 0.3 * phase + c));
  }
  return field;
}

// |field|^2 of all ranks together. Collective.
inline double square_over_ranks(const Group& group, const std::vector<std::complex<double>>& field) {
  double mine = 0;
  for (const std::complex<double>& each : field) mine += std::norm(each);
  double total = 0;
  for (const auto& each : group.allgather(std::as_bytes(std::span(&mine, 1)))) {
    double theirs = 0;
    std::memcpy(&theirs, each.data(), sizeof theirs);
    total += theirs;
  }
  return total;
}

}  // namespace onehop::testing
