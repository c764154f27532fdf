// What the modules that measure share: samples as Python has them, and the roles and variants of candidates.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include <nanobind/stl/tuple.h>

#include "measure/allreduce.h"
#include "measure/rounds.h"
#include "onehop/error.h"
#include "python/bindings/bindings.h"
#include "python/bindings/memory.h"

namespace samples {

using onehop::measure::Role;
using onehop::measure::Samples;
// (name, role, codec, algorithm, chunk_bytes)
using ReduceVariant = std::tuple<std::string, std::string, std::string, std::string, std::int64_t>;

// Converts the samples of each candidate to (name, role, µs of each round).
[[nodiscard]] inline nb::list as_list(const std::vector<Samples>& samples) {
  nb::list list;
  for (const Samples& candidate : samples)
    list.append(nb::make_tuple(candidate.name, to_string(candidate.role), candidate.us));
  return list;
}

template <class Measure>
[[nodiscard]] nb::list measure(const Measure& function) {
  std::vector<Samples> samples;
  {
    const nb::gil_scoped_release released;
    samples = function();
  }
  return as_list(samples);
}

[[nodiscard]] inline Role role_from_string(const std::string& name) {
  for (const Role role : {Role::ours, Role::variant, Role::peer, Role::speed_of_light}) {
    if (name == to_string(role)) return role;
  }
  throw onehop::BadInput("expected the role of a candidate, found '" + name + "'");
}

[[nodiscard]] inline std::vector<onehop::measure::AllReduceVariant> variants(const std::vector<ReduceVariant>& given) {
  std::vector<onehop::measure::AllReduceVariant> made;
  for (const auto& [name, role, codec, algorithm, chunk] : given) {
    made.push_back({name, role_from_string(role), onehop::codec_from_string(codec),
                    onehop::reduce_algorithm_from_string(algorithm), chunk});
  }
  return made;
}

// Returns (name, role, µs of each round, error) of each candidate.
[[nodiscard]] inline nb::list sum_samples(const onehop::Group& group, std::int64_t bytes,
                                          const onehop::measure::AllReduceOptions& options) {
  onehop::measure::AllReduceSamples measured;
  {
    const nb::gil_scoped_release released;
    measured = onehop::measure::allreduce(group, bytes, options);
  }
  nb::list list;
  for (std::size_t i = 0; i < measured.samples.size(); ++i) {
    const Samples& candidate = measured.samples[i];
    list.append(nb::make_tuple(candidate.name, to_string(candidate.role), candidate.us, measured.errors[i]));
  }
  return list;
}

[[nodiscard]] inline std::vector<std::span<std::byte>> spans(const std::vector<const Memory*>& memory) {
  std::vector<std::span<std::byte>> arrays;
  for (const Memory* array : memory) arrays.push_back(array->bytes());
  return arrays;
}

}  // namespace samples
