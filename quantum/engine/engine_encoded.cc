#include "quantum/engine/engine_encoded.h"

#include <bit>
#include <complex>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "quantum/engine/engine_run.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/base/thread_count.h"

namespace onehop::quantum {
namespace {

LocalOperation controlled_x(int control, int target) {
  const std::uint64_t mask = std::uint64_t{1} << control;
  return {.kind = LocalKind::matrix,
          .bits = {target},
          .control_mask = mask,
          .control_values = mask,
          .values = {0, 1, 1, 0}};
}

}  // namespace

void add_narrowed(std::vector<LocalOperation>& list, LocalOperation op) {
  const bool diagonal = op.x_mask == 0;
  const std::uint64_t many = diagonal ? op.z_mask : op.x_mask;
  const int top = std::bit_width(many) - 1;
  std::vector<LocalOperation> ladder;
  for (std::uint64_t rest = many & ~(std::uint64_t{1} << top); rest != 0; rest &= rest - 1) {
    const int bit = std::countr_zero(rest);
    ladder.push_back(diagonal ? controlled_x(bit, top) : controlled_x(top, bit));
  }
  const int before = std::popcount(op.x_mask & op.z_mask);
  if (diagonal) {
    op.z_mask = std::uint64_t{1} << top;
  } else {
    // The parity of z over an index after the ladder is that before it, if the top bit counts for the flipped ones.
    op.x_mask = std::uint64_t{1} << top;
    if (std::popcount(many & ~op.x_mask & op.z_mask) % 2 != 0) op.z_mask ^= op.x_mask;
  }
  // P|i> = i^ys (-1)^parity(i & z) |i ^ x>: the powers of i differ by a sign.
  if ((before - std::popcount(op.x_mask & op.z_mask)) % 4 != 0) op.angle = -op.angle;
  list.insert(list.end(), ladder.begin(), ladder.end());
  list.push_back(std::move(op));
  list.insert(list.end(), ladder.begin(), ladder.end());
}

namespace {

// The operations in a form that tiles take.
std::vector<LocalOperation> fitting(std::span<const LocalOperation> operations, const PassList& list,
                                    const TileSizes& sizes) {
  std::vector<bool> fits(operations.size(), true);
  for (const Pass& pass : list.passes) {
    if (pass.tile == 0) fits[pass.items.front().index] = false;
  }
  std::vector<LocalOperation> all;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const LocalOperation& op = operations[i];
    if (fits[i]) {
      all.push_back(op);
    } else if (op.kind == LocalKind::pauli_rotation) {
      add_narrowed(all, op);
    } else {
      throw BadInput("expected matrices on at most " + std::to_string(sizes.tile - sizes.low) +
                     " qubits with an encoded state, found one on " + base::counted(op.bits.size(), "qubit") +
                     " with " + base::counted(std::popcount(op.control_mask), "control") + "; take precision single");
    }
  }
  return all;
}

EngineCounters apply_whole(EncodedAmplitudes& amplitudes, std::span<const LocalOperation> operations,
                           const EngineOptions& options) {
  std::vector<std::complex<float>> all(std::size_t{1} << amplitudes.bits());
  amplitudes.decode(0, all);
  const EngineCounters counters = apply<float>(all, operations, options);
  amplitudes.finish_pass(amplitudes.encode(0, all));
  return counters;
}

}  // namespace

EngineCounters apply_encoded(EncodedAmplitudes& amplitudes, std::span<const LocalOperation> operations,
                             const EngineOptions& options) {
  const int bits = amplitudes.bits();
  const double begin = base::steady_seconds();
  const TileSizes sizes = tile_sizes(bits, sizeof(std::complex<float>));
  if (sizes.tile == 0) return apply_whole(amplitudes, operations, options);
  PassList list = make_pass_list(bits, operations, sizes);
  std::vector<LocalOperation> narrowed;
  for (const Pass& pass : list.passes) {
    if (pass.tile != 0) continue;
    narrowed = fitting(operations, list, sizes);
    operations = narrowed;
    list = make_pass_list(bits, operations, sizes);
    break;
  }
  EngineCounters counters;
  counters.planning_seconds = base::steady_seconds() - begin;
  const EngineStates<float> states{.encoded = &amplitudes};
  run_passes<float>(states, operations, list, sizes, kernels<float>(), base::thread_count(options.threads),
                    options.records);
  counters.passes = static_cast<double>(list.passes.size());
  counters.operations = static_cast<std::int64_t>(operations.size());
  counters.seconds = base::steady_seconds() - begin;
  return counters;
}

}  // namespace onehop::quantum
