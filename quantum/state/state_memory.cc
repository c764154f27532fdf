// The memory that a state needs, checked before it is allocated, and the hosts of its ranks.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "quantum/state/state_impl.h"
#include "src/base/memory_left.h"
#include "src/base/one_size.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

// The ranks of this rank's host as one number: the first one and their count. -1 if they are not consecutive.
std::int64_t block_of(const Group& group) {
  const std::vector<int> local = group.local_ranks();
  const auto count = static_cast<std::int64_t>(local.size());
  return local.back() - local.front() + 1 == count ? std::int64_t{local.front()} << 32 | count : -1;
}

int ranks_per_host_of(const std::vector<std::int64_t>& blocks) {
  const std::int64_t count = blocks.front();  // the block of rank 0 begins at 0
  if (count < 1 || !std::has_single_bit(static_cast<std::uint64_t>(count))) return 0;
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    const auto number = static_cast<std::int64_t>(rank);
    if (blocks[rank] != ((number - number % count) << 32 | count)) return 0;
  }
  return static_cast<int>(count);
}

}  // namespace

std::int64_t bytes_of_amplitudes(Precision precision, int bits) {
  return std::llround(std::ceil(std::ldexp(bytes_per_amplitude(precision), bits)));
}

std::int64_t staging_of(int local_bits, int ranks, Precision precision, std::int64_t max_bytes) {
  if (ranks == 1) return 0;
  const std::int64_t amplitudes = bytes_of_amplitudes(precision, local_bits);
  return std::clamp<std::int64_t>(amplitudes / (64 * std::int64_t{ranks - 1}),
                                  std::min<std::int64_t>(max_bytes, 1 << 14), max_bytes);
}

MemoryNeed memory_need(int qubits, int ranks, Precision precision, int ranks_per_node, const StateOptions& options) {
  const int local_bits = qubits - std::countr_zero(std::bit_floor(static_cast<unsigned>(std::max(ranks, 1))));
  MemoryNeed need;
  const bool on_device = options.device != "cpu";
  need.available = on_device ? device::Device::named(options.device)->free_memory() : available_memory();
  if (local_bits < 0) return need;
  const std::int64_t partners = ranks - 1;
  if (local_bits > 56) {
    need.per_rank = need.in_all = need.here = std::numeric_limits<std::int64_t>::max();
    return need;
  }
  need.per_rank =
      bytes_of_amplitudes(precision, local_bits) +
      (on_device ? device_work_bytes : partners * staging_of(local_bits, ranks, precision, options.staging));
  const auto times = [&](std::int64_t count) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(need.per_rank, count, &product) ? std::numeric_limits<std::int64_t>::max() : product;
  };
  need.in_all = times(ranks);
  need.here = times(ranks_per_node);
  return need;
}

int largest_state(int ranks, Precision precision, int ranks_per_node, const std::string& device) {
  const bool on_device = device != "cpu";
  const std::int64_t memory = on_device ? device::Device::named(device)->memory() : detail::whole_memory();
  const int here = on_device ? 1 : ranks_per_node;
  int qubits = 62;
  while (qubits > 1 && memory_need(qubits, ranks, precision, here, {.device = device}).here > memory) --qubits;
  return qubits;
}

int check_memory(const Group& group, int qubits, Precision precision, const StateOptions& options) {
  const int here = static_cast<int>(group.local_ranks().size());
  const MemoryNeed need = memory_need(qubits, group.size(), precision, here, options);
  // If one machine has too little memory, all ranks throw.
  const std::array<std::int64_t, 3> mine{need.here, need.available, block_of(group)};
  std::vector<std::int64_t> blocks;
  std::int64_t worst_need = 0;
  std::int64_t worst_available = 0;
  bool fits = true;
  for (const auto& theirs : base::values_of_all(group, mine)) {
    blocks.push_back(theirs[2]);
    if (theirs[0] <= theirs[1]) continue;
    if (fits || theirs[1] < worst_available)
      worst_need = theirs[0], worst_available = std::max<std::int64_t>(theirs[1], 0);
    fits = false;
  }
  if (fits) return ranks_per_host_of(blocks);
  int max_qubits = qubits;
  while (max_qubits > 1 && memory_need(max_qubits, group.size(), precision, here, options).here > worst_available)
    --max_qubits;
  std::int64_t machines = 2;
  while (worst_need / machines > worst_available) machines *= 2;
  std::string message = "a state of " + base::counted(qubits, "qubit") + " in " + std::string(to_string(precision)) +
                        " precision needs " + base::bytes_text(need.per_rank) + " on each of " +
                        base::counted(group.size(), "rank") + ", " + base::bytes_text(worst_need) +
                        " on a machine that has " + base::bytes_text(worst_available) + " left. It would fit on " +
                        std::to_string(machines) + " times as many machines; here " + std::to_string(max_qubits) +
                        " qubits fit";
  for (const Precision other : {Precision::single_precision, Precision::fp16, Precision::q8, Precision::q6}) {
    if (bytes_per_amplitude(other) >= bytes_per_amplitude(precision)) continue;
    if (memory_need(qubits, group.size(), other, here, options).here > worst_available) continue;
    message += ", or " + std::string(to_string(other)) + " precision";
    break;
  }
  throw Error(message);
}

int ranks_per_host(const Group& group) { return ranks_per_host_of(base::values_of_all(group, block_of(group))); }

}  // namespace onehop::quantum
