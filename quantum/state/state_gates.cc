// Gates and measurements on the amplitudes of a rank.
#include <algorithm>
#include <cmath>

#include "quantum/engine/engine_encoded.h"
#include "quantum/state/state_impl.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {

EngineCounters State::apply(std::span<const LocalOperation> operations, std::vector<PassRecord>* records) {
  if (operations.empty()) return {};
  EngineOptions options = impl_->engine;
  options.records = records;
  if (impl_->on_device) return impl_->on_device->apply(operations, records);
  if (impl_->stored) {
    EngineCounters counters;
    std::vector<LocalOperation> rest(operations.begin(), operations.end());
    while (!rest.empty()) counters.add(apply_some(rest, records));
    return counters;
  }
  if (impl_->is_encoded()) return apply_encoded(impl_->encoded, operations, options);
  return impl_->visit(
      [&]<typename T>(std::span<std::complex<T>> local) { return quantum::apply<T>(local, operations, options); });
}

EngineCounters State::apply_some(std::vector<LocalOperation>& operations, std::vector<PassRecord>* records) {
  if (impl_->stored && !operations.empty()) {
    EngineOptions options = impl_->engine;
    options.records = records;
    return impl_->stored->apply_some(operations, options, impl_->encoded);
  }
  const EngineCounters counters = apply(operations, records);
  operations.clear();
  return counters;
}

void State::fill_zero() {
  const std::complex<double> zero;
  if (impl_->on_device) return impl_->on_device->set_product(std::span(&zero, 1), {});
  const auto fill = [&]<typename T>(std::span<std::complex<T>> local, std::uint64_t) {
    base::parallel_for(impl_->engine.threads, local.size(), std::uint64_t{1} << 16,
                       [&](std::uint64_t begin, std::uint64_t end) {
                         std::fill(local.begin() + static_cast<std::ptrdiff_t>(begin),
                                   local.begin() + static_cast<std::ptrdiff_t>(end), std::complex<T>(0));
                       });
  };
  impl_->change_windows(fill, true);
}

void State::scale(double factor) {
  if (impl_->is_encoded() && factor > 0) return impl_->encoded.set_scale(impl_->encoded.scale() * factor);
  const LocalOperation scale{.kind = LocalKind::diagonal, .values = {factor}};
  apply(std::span(&scale, 1));
}

double State::probability_of_one(int qubit) const { return probabilities(std::span(&qubit, 1))[1]; }

void State::collapse(int qubit, int value, double probability) {
  const int bit = impl_->bit_of(qubit);
  const double factor = 1 / std::sqrt(probability);
  if (impl_->on_device && bit < impl_->local_bits) {
    LocalOperation project{.kind = LocalKind::diagonal, .bits = {bit}, .values = {0, 0}};
    project.values[static_cast<std::size_t>(value)] = factor;
    apply(std::span(&project, 1));
    return;
  }
  if (bit < impl_->local_bits) {
    const int inside = impl_->window_bits();
    const auto project = [&]<typename T>(std::span<std::complex<T>> local, std::uint64_t first) {
      if (bit < inside) return quantum::collapse<T>(local, bit, value, factor, impl_->engine);
      const bool stays = (first >> bit & 1U) == static_cast<unsigned>(value);
      for (std::complex<T>& amplitude : local) amplitude *= static_cast<T>(stays ? factor : 0.0);
    };
    return impl_->change_windows(project);
  }
  const bool stays = impl_->held(bit) == static_cast<unsigned>(value);
  scale(stays ? factor : 0.0);
}

void State::flip(int qubit) {
  const int bit = impl_->bit_of(qubit);
  if (bit >= impl_->local_bits) {
    impl_->flips ^= std::uint64_t{1} << bit;
    return;
  }
  const LocalOperation x{.kind = LocalKind::matrix, .bits = {bit}, .values = {0, 1, 1, 0}};
  apply(std::span(&x, 1));
}

}  // namespace onehop::quantum
