#include "lattice/solver/source_scale.h"

#include <algorithm>
#include <cmath>

#include "lattice/support/over_ranks.h"

namespace onehop::lattice::detail {

namespace {

// Sources whose largest number has a binary exponent (std::frexp) from -10 to 10 are not scaled.
constexpr int unscaled_exponent = 10;

std::complex<double> scaled(const std::complex<double>& z, int exponent) {
  return {std::ldexp(z.real(), exponent), std::ldexp(z.imag(), exponent)};
}

// The largest absolute value of each right-hand side over all ranks. Unspecified for sources that are not finite:
// check_sources() throws later.
std::vector<double> largest_numbers(const Group& group, std::span<const std::complex<double>> sources,
                                    std::size_t num_rhs) {
  const std::size_t length = sources.size() / num_rhs;
  std::vector<double> largest(num_rhs, 0);
  for (std::size_t i = 0; i < sources.size(); ++i)
    largest[i / length] = std::max({largest[i / length], std::abs(sources[i].real()), std::abs(sources[i].imag())});
  largest_over_ranks(group, largest);
  return largest;
}

}  // namespace

SourceScale::SourceScale(const Group& group, std::span<const std::complex<double>> sources, int num_rhs)
    : sources_(sources) {
  for (const double largest : largest_numbers(group, sources, static_cast<std::size_t>(num_rhs))) {
    int exponent = 0;
    if (std::isfinite(largest)) std::frexp(largest, &exponent);
    exponents_.push_back(std::abs(exponent) > unscaled_exponent ? exponent : 0);
  }
  if (std::ranges::all_of(exponents_, [](int exponent) { return exponent == 0; })) return;
  scaled_.assign(sources.begin(), sources.end());
  const std::size_t length = sources.size() / exponents_.size();
  for (std::size_t i = 0; i < scaled_.size(); ++i) scaled_[i] = scaled(scaled_[i], -exponents_[i / length]);
  sources_ = scaled_;
}

void SourceScale::restore(std::span<std::complex<double>> solutions) const {
  if (scaled_.empty()) return;
  const std::size_t length = solutions.size() / exponents_.size();
  for (std::size_t i = 0; i < solutions.size(); ++i) solutions[i] = scaled(solutions[i], exponents_[i / length]);
}

}  // namespace onehop::lattice::detail
