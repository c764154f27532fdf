// States on devices: the devices of ranks, and the exchanges between them.
#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "quantum/state/state_impl.h"
#include "src/base/one_size.h"
#include "src/base/text.h"
#include "src/device/self_test.h"
#include "src/group/agreement.h"

namespace onehop::quantum {
namespace {

// The memory of the processor through which ranks that do not reach each other's devices exchange amplitudes.
constexpr std::int64_t staging_bytes = std::int64_t{16} << 20;

// A device of a rank, and how many ranks of its host share it.
struct Share {
  std::shared_ptr<device::Device> device;
  std::int64_t ranks = 1;
};

// "cuda" and "hip" give the ranks of a host one card after the other.
Share device_of(const Group& group, const std::string& name) {
  const std::vector<int> local = group.local_ranks();
  const auto here = static_cast<std::int64_t>(local.size());
  if (name != "cuda" && name != "hip") return {device::Device::named(name), here};
  std::string reason;
  const int cards = device::Device::count(name == "cuda" ? device::Kind::cuda : device::Kind::hip, reason);
  if (cards == 0) return {device::Device::named(name), here};  // throws
  const auto mine = std::ranges::find(local, group.rank()) - local.begin();
  return {device::Device::named(name + ":" + std::to_string(mine % cards)), (here + cards - 1) / cards};
}

void check_device_memory(const Share& share, int qubits, int ranks, Precision precision) {
  const int local_bits = qubits - std::countr_zero(static_cast<unsigned>(ranks));
  const std::int64_t free = share.device->free_memory();
  const auto needed = [&](int bits) {
    return bits > 56 ? std::int64_t{1} << 61 : bytes_of_amplitudes(precision, bits) + device_work_bytes;
  };
  if (needed(local_bits) <= free / share.ranks) return;
  int fits = local_bits;
  while (fits > 0 && needed(fits) > free) --fits;
  std::string message = "a state of " + base::counted(qubits, "qubit") + " in " + std::string(to_string(precision)) +
                        " precision needs " + base::bytes_text(needed(local_bits)) + " on the device of each of " +
                        base::counted(ranks, "rank") + ", of which " + std::to_string(share.ranks) + " share " +
                        share.device->text() + " with " + base::bytes_text(free) + " left";
  if (fits > 0 && qubits - fits < 31) {
    message += ". It would fit on " + base::counted(std::int64_t{1} << (qubits - fits), "such device");
    message += ", each with a rank of its own";
  }
  throw Error(message);
}

// A permutation of bits as two, each of which exchanges pairs of bits: a cycle is two reflections.
std::array<std::vector<int>, 2> as_exchanges(const std::vector<int>& permutation) {
  std::array<std::vector<int>, 2> exchanges;
  for (auto& one : exchanges) {
    one.resize(permutation.size());
    std::iota(one.begin(), one.end(), 0);
  }
  std::vector<bool> seen(permutation.size());
  for (std::size_t begin = 0; begin < permutation.size(); ++begin) {
    std::vector<int> cycle;
    for (std::size_t bit = begin; !seen[bit]; bit = static_cast<std::size_t>(permutation[bit])) {
      seen[bit] = true;
      cycle.push_back(static_cast<int>(bit));
    }
    const std::size_t size = cycle.size();
    for (std::size_t i = 0; i < size; ++i) {
      exchanges[0][static_cast<std::size_t>(cycle[i])] = cycle[(size - i) % size];
      exchanges[1][static_cast<std::size_t>(cycle[i])] = cycle[(size + 1 - i) % size];
    }
  }
  return exchanges;
}

std::uint64_t moved(std::uint64_t number, const std::vector<int>& permutation) {
  std::uint64_t result = 0;
  for (std::size_t bit = 0; bit < permutation.size(); ++bit) result |= (number >> bit & 1U) << permutation[bit];
  return result;
}

bool moves_something(const std::vector<int>& permutation) { return !std::ranges::is_sorted(permutation); }

}  // namespace

std::string device_of_rank(const Group& group, const std::string& device) {
  if (device != "cuda" && device != "hip") return device;
  return device + ":" + std::to_string(device_of(group, device).device->index());
}

std::unique_ptr<DeviceAmplitudes> make_on_device(const Group& group, int qubits, Precision precision,
                                                 const StateOptions& options) {
  Share share;
  group.barrier();  // until the others have unmapped a state before this one, its memory is not free
  detail::agree(*group.state(), "making a state on devices", detail::failure_of([&] {
    share = device_of(group, options.device);
    check_device_memory(share, qubits, group.size(), precision);
    device::check_at_first_use(*share.device);
  }));
  return std::make_unique<DeviceAmplitudes>(share.device, precision == Precision::double_precision,
                                            qubits - std::countr_zero(static_cast<unsigned>(group.size())));
}

std::int64_t State::Impl::move_on_device(const std::vector<int>& permutation) {
  // Blocks of the local bits that stay, which move as a whole.
  int block_bits = 0;
  for (int bit = 0; bit < local_bits; ++bit)
    block_bits += permutation[static_cast<std::size_t>(bit)] < local_bits ? 1 : 0;
  const auto parts =
      around_low_bits(permutation, static_cast<std::size_t>(block_bits), static_cast<std::size_t>(local_bits));
  on_device->apply(swaps_of(parts[0]));
  std::int64_t sent = 0;
  if (moves_something(parts[1])) {
    std::vector<int> of_blocks(parts[1].begin() + block_bits, parts[1].end());
    for (int& bit : of_blocks) bit -= block_bits;
    sent = reach_peers() ? exchange_blocks(of_blocks, block_bits) : exchange_through_memory(of_blocks, block_bits);
  }
  on_device->apply(swaps_of(parts[2]));
  return sent;
}

// Maps the amplitudes of all ranks, if all share memory and their devices reach each other. Collective.
bool State::Impl::reach_peers() {
  if (peers_asked) return !peers.empty();
  peers_asked = true;
  device::SharedPlace place;
  char good = 1;
  for (int rank = 0; rank < group.size(); ++rank) good &= group.shares_memory(rank) ? 1 : 0;
  const auto agreed = [&] { return std::ranges::min(base::values_of_all(group, good)) != 0; };
  if (!agreed()) return false;
  try {
    place = on_device->share();
  } catch (const Error&) {
    good = 0;
  }
  const auto places = base::values_of_all(group, place);
  try {
    for (std::size_t rank = 0; good != 0 && rank < places.size(); ++rank) {
      peers.push_back(std::cmp_equal(rank, group.rank()) ? on_device->memory()
                                                         : on_device->device()->reach(places[rank]));
    }
  } catch (const Error&) {
    good = 0;  // cards without access to each other
  }
  if (!agreed()) peers.clear();
  return !peers.empty();
}

// Exchanges blocks of 2^block_bits amplitudes in place: of two ranks with a pair, each moves a half.
std::int64_t State::Impl::exchange_blocks(const std::vector<int>& permutation, int block_bits) {
  const std::size_t bytes = on_device->amplitude_bytes() << block_bits;
  const int inside = local_bits - block_bits;
  std::int64_t sent = 0;
  for (const std::vector<int>& exchange : as_exchanges(permutation)) {
    if (!moves_something(exchange)) continue;
    on_device->wait();
    group.barrier();
    for (std::uint64_t block = 0; block >> inside == 0; ++block) {
      const std::uint64_t number = static_cast<std::uint64_t>(group.rank()) << inside | block;
      const std::uint64_t other = moved(number, exchange);
      const bool is_mine = other >> inside == number >> inside;
      if (other == number || (is_mine && other < number)) continue;
      const std::size_t half = is_mine ? bytes : bytes / 16 * 8;
      const std::size_t begin = number < other ? 0 : half;
      std::byte* const theirs = peers[other >> inside].data() + (other - (other >> inside << inside)) * bytes;
      on_device->swap(on_device->memory().data() + block * bytes + begin, theirs + begin,
                      number < other ? half : bytes - half);
      if (!is_mine) sent += static_cast<std::int64_t>(bytes);
    }
    on_device->wait();
    group.barrier();
  }
  return sent;
}

// The same through memory of the processor, a part of each block at a time.
std::int64_t State::Impl::exchange_through_memory(const std::vector<int>& permutation, int block_bits) {
  const int inside = local_bits - block_bits;
  const auto amplitude = static_cast<std::int64_t>(on_device->amplitude_bytes());
  const std::int64_t block = std::int64_t{1} << block_bits;  // in amplitudes
  const std::int64_t chunk = std::min(block, std::max<std::int64_t>(1, staging_bytes / amplitude >> inside));
  const device::PinnedMemory memory = on_device->device()->allocate_pinned((chunk << inside) * amplitude);
  const std::span<std::byte> bytes(memory.host.data(), static_cast<std::size_t>((chunk << inside) * amplitude));
  PermuteBitsSpec spec{static_cast<int>(permutation.size()), inside, permutation};
  spec.element_bytes = chunk * amplitude;
  const std::array<std::span<std::byte>, 1> arrays{bytes};
  Plan plan(group, permute_bits(spec, group.rank()), arrays);
  const auto size = static_cast<std::size_t>(spec.element_bytes);
  for (std::int64_t begin = 0; begin < block; begin += chunk) {
    for (std::size_t b = 0; b >> inside == 0; ++b) {
      on_device->read(static_cast<std::uint64_t>(begin) + (b << block_bits), bytes.subspan(b * size, size));
    }
    plan.run();
    for (std::size_t b = 0; b >> inside == 0; ++b) {
      on_device->write(static_cast<std::uint64_t>(begin) + (b << block_bits), bytes.subspan(b * size, size));
    }
  }
  return plan.counters().bytes_sent;
}

}  // namespace onehop::quantum
