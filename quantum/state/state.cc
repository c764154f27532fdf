#include "onehop/quantum/state.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"
#include "quantum/engine/engine_encoded.h"
#include "quantum/state/state_impl.h"
#include "src/base/one_size.h"
#include "src/base/text.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::quantum {
namespace {

int check_size(const Group& group, int qubits, Precision precision) {
  const int ranks = group.size();
  if (!std::has_single_bit(static_cast<unsigned>(ranks))) {
    const auto fewer = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
    throw BadInput("expected a number of ranks that is a power of two, found " + std::to_string(ranks) + "; take " +
                   std::to_string(fewer) + " or " + std::to_string(2 * fewer));
  }
  if (qubits < 1 || qubits > 62) throw BadInput("expected a state of 1 to 62 qubits, found " + std::to_string(qubits));
  const int local_bits = qubits - std::countr_zero(static_cast<unsigned>(ranks));
  if (local_bits < 1) {
    throw BadInput("a state of " + base::counted(qubits, "qubit") + " has too few amplitudes for " +
                   base::counted(ranks, "rank") + "; take at most " + std::to_string(1 << (qubits - 1)));
  }
  const int rank_bits = qubits - local_bits;
  if (is_encoded(precision) && local_bits < EncodedAmplitudes::block_bits + rank_bits) {
    throw BadInput("expected at least " + std::to_string(EncodedAmplitudes::block_bits + 2 * rank_bits) +
                   " qubits in precision " + std::string(to_string(precision)) + " on " + base::counted(ranks, "rank") +
                   ", found " + std::to_string(qubits) + "; take precision single, or fewer ranks");
  }
  return local_bits;
}

template <typename T>
void sum_numbers(const Group& group, std::span<T> numbers) {
  if (group.size() == 1) return;
  const Gathered all =
      base::of_one_size(group.allgather(std::as_bytes(std::span<const T>(numbers))), numbers.size_bytes());
  std::fill(numbers.begin(), numbers.end(), T{});
  std::vector<T> theirs(numbers.size());
  for (const auto& bytes : all) {
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(theirs)).begin());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += theirs[i];
  }
}

}  // namespace

void sum_over_ranks(const Group& group, std::span<double> numbers) { sum_numbers(group, numbers); }
void sum_over_ranks(const Group& group, std::span<std::complex<double>> numbers) { sum_numbers(group, numbers); }

std::vector<double> sum_over_parts(const Group& group, std::span<const double> numbers, std::size_t count) {
  const std::size_t parts = count == 0 ? 0 : numbers.size() / count;
  std::vector<double> sums(count);
  std::vector<double> theirs(numbers.size());
  for (const auto& bytes : base::of_one_size(group.allgather(std::as_bytes(numbers)), numbers.size_bytes())) {
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(theirs)).begin());
    for (std::size_t part = 0; part < parts; ++part) {
      for (std::size_t i = 0; i < count; ++i) sums[i] += theirs[part * count + i];
    }
  }
  return sums;
}

State::Impl::Impl(const Group& the_group, int the_qubits, Precision the_precision, const StateOptions& options)
    : group(the_group), qubits(the_qubits), precision(the_precision) {
  local_bits = check_size(group, qubits, precision);
  part_bits = local_bits;
  const bool on_disk = !options.folder.empty();
  if (on_disk && group.size() > 1) {
    throw BadInput("expected 1 rank for a state in a folder, found " + std::to_string(group.size()) +
                   "; its threads share the work");
  }
  device = options.device;
  const bool on_card = device != "cpu";
  if (on_card && (on_disk || is_encoded())) {
    throw BadInput("expected a state in memory in precision double or single for the device '" + device + "', found " +
                   (on_disk ? "one in a folder" : "precision " + std::string(to_string(precision))));
  }
  if (on_card) on_device = make_on_device(group, qubits, precision, options);
  ranks_per_host = on_disk   ? 1
                   : on_card ? quantum::ranks_per_host(group)
                             : check_memory(group, qubits, precision, options);
  staging = staging_of(local_bits, group.size(), precision, options.staging);
  engine.threads = base::thread_count(options.threads, group);
  if (on_disk) {
    stored = std::make_unique<StoredAmplitudes>(precision, local_bits, options);
  } else if (!on_card) {
    memory = group.allocate(bytes_of_amplitudes(precision, local_bits));
  }
  if (is_encoded()) encoded = EncodedAmplitudes(codec_of(precision), local_bits, memory.bytes());
  // Not every system has huge pages for shared memory, so a failure is ignored.
  if (!on_disk && !on_card) madvise(memory.bytes().data(), memory.bytes().size(), MADV_HUGEPAGE);
  bits.resize(static_cast<std::size_t>(qubits));
  std::iota(bits.begin(), bits.end(), 0);
}

Plan& State::Impl::plan_for(const std::vector<int>& permutation) {
  for (auto& [key, plan] : plans) {
    if (key == permutation) return *plan;
  }
  // Drop the cached plans when their staging exceeds the budget, or when there are many.
  std::int64_t held = 0;
  for (const auto& [key, plan] : plans) held += plan->staging_bytes();
  if (held > std::int64_t{1} << 20 || plans.size() >= 32) plans.clear();
  // Encoded blocks move whole.
  const int inside = is_encoded() ? EncodedAmplitudes::block_bits : 0;
  PermuteBitsSpec spec{qubits - inside, local_bits - inside, {permutation.begin() + inside, permutation.end()}};
  for (int& bit : spec.permutation) bit -= inside;
  spec.element_bytes = bytes_of_amplitudes(precision, inside);
  const Schedule schedule = permute_bits(spec, group.rank());
  PlanOptions options;
  options.slot_bytes = std::max<std::int64_t>(staging / 2, 4096);
  const std::array<std::span<std::byte>, 1> arrays{memory.bytes()};
  plans.emplace_back(permutation, std::make_unique<Plan>(group, schedule, arrays, options));
  return *plans.back().second;
}

std::int64_t State::Impl::bytes_between_hosts(const std::vector<int>& permutation) const {
  // The number of a destination: bits that come from this rank's number are fixed, those from local bits take all
  // values equally often.
  const auto rank = static_cast<unsigned>(group.rank());
  unsigned fixed = 0;
  std::vector<int> free;
  for (int bit = 0; bit < qubits; ++bit) {
    const int to = permutation[static_cast<std::size_t>(bit)] - local_bits;
    if (to < 0) continue;
    if (bit < local_bits) {
      free.push_back(to);
    } else {
      fixed |= (rank >> (bit - local_bits) & 1U) << to;
    }
  }
  const std::int64_t share = bytes_of_amplitudes(precision, local_bits) >> free.size();
  std::int64_t bytes = 0;
  for (unsigned value = 0; value >> free.size() == 0; ++value) {
    unsigned destination = fixed;
    for (std::size_t i = 0; i < free.size(); ++i) destination |= (value >> i & 1U) << free[i];
    if (!group.shares_memory(static_cast<int>(destination))) bytes += share;
  }
  return bytes;
}

unsigned State::Impl::held(int bit) const {
  return ((static_cast<unsigned>(group.rank()) >> (bit - local_bits)) ^ static_cast<unsigned>(flips >> bit)) & 1U;
}

int State::Impl::bit_of(int qubit) const {
  if (qubit < 0 || qubit >= qubits) {
    throw BadInput("qubit " + std::to_string(qubit) + " does not exist; the state has " + std::to_string(qubits));
  }
  return bits[static_cast<std::size_t>(qubit)];
}

void State::Impl::check_distinct(std::span<const int> list) const {
  std::uint64_t seen = 0;
  for (const int qubit : list) {
    const std::uint64_t mask = std::uint64_t{1} << bit_of(qubit);
    if ((seen & mask) != 0) throw BadInput("qubit " + std::to_string(qubit) + " is named twice");
    seen |= mask;
  }
}

State::State(const Group& group, int qubits, Precision precision, const StateOptions& options)
    : impl_(std::make_unique<Impl>(group, qubits, precision, options)) {
  // The memory is zero.
  if (impl_->stored) {
    with_type(precision, [&]<typename T>() {  // what was never written is zero
      std::vector<std::complex<T>> window(std::size_t{1} << impl_->window_bits());
      window[0] = 1;
      static_cast<void>(impl_->write_from(0, std::span(window)));
    });
  } else if (impl_->is_encoded()) {
    std::vector<std::complex<float>> block(std::size_t{1} << EncodedAmplitudes::block_bits);
    if (group.rank() == 0) block[0] = static_cast<float>(1 / EncodedAmplitudes::first_scale);
    impl_->encoded.finish_pass(impl_->encoded.encode(0, block));
  } else if (impl_->on_device) {
    set_basis_state(0);
  } else if (group.rank() == 0) {
    impl_->visit([](auto amplitudes) { amplitudes[0] = 1; });
  }
}
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;
State::~State() = default;

const Group& State::group() const noexcept { return impl_->group; }
int State::qubits() const noexcept { return impl_->qubits; }
int State::local_bits() const noexcept { return impl_->local_bits; }
Precision State::precision() const noexcept { return impl_->precision; }
std::span<const int> State::bits() const noexcept { return impl_->bits; }
std::uint64_t State::flips() const noexcept { return impl_->flips; }
const StateCounters& State::counters() const noexcept { return impl_->counters; }
const EngineOptions& State::engine() const noexcept { return impl_->engine; }
int State::ranks_per_host() const noexcept { return impl_->ranks_per_host; }
void State::set_ranks_per_host(int ranks) noexcept { impl_->ranks_per_host = ranks; }

template <typename T>
std::span<std::complex<T>> State::local() const {
  require_plain(impl_->precision, "the amplitudes of a rank");
  if (impl_->stored || impl_->on_device) impl_->visit([](auto) {});  // throws
  if (sizeof(std::complex<T>) != static_cast<std::size_t>(bytes_per_amplitude(impl_->precision))) {
    throw BadInput(std::string("expected a request for amplitudes in ") +
                   (impl_->precision == Precision::single_precision ? "single" : "double") +
                   " precision, that of the state, found the other one");
  }
  return impl_->amplitudes<T>();
}
template std::span<std::complex<float>> State::local() const;
template std::span<std::complex<double>> State::local() const;

template <typename T>
std::span<const std::complex<T>> State::piece(std::uint64_t first, std::size_t count,
                                              std::vector<std::complex<T>>& memory) const {
  return impl_->piece(first, count, memory);
}
template std::span<const std::complex<float>> State::piece(std::uint64_t, std::size_t,
                                                           std::vector<std::complex<float>>&) const;
template std::span<const std::complex<double>> State::piece(std::uint64_t, std::size_t,
                                                            std::vector<std::complex<double>>&) const;
bool State::is_stored() const noexcept { return impl_->stored != nullptr; }
const std::string& State::device() const noexcept { return impl_->device; }
DeviceAmplitudes* State::on_device() const noexcept { return impl_->on_device.get(); }
DiskCounters State::disk() const { return impl_->stored ? impl_->stored->counters() : DiskCounters(); }
int State::window_bits() const noexcept { return impl_->window_bits(); }

std::uint64_t State::index_of(std::uint64_t place) const {
  std::uint64_t index = 0;
  for (int qubit = 0; qubit < impl_->qubits; ++qubit) {
    const int bit = impl_->bits[static_cast<std::size_t>(qubit)];
    const std::uint64_t value = bit < impl_->local_bits ? ((place ^ impl_->flips) >> bit) & 1U : impl_->held(bit);
    index |= value << qubit;
  }
  return index;
}

void State::set_layout(std::vector<int> bits, std::uint64_t flips) {
  std::vector<int> sorted = bits;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() != impl_->bits.size() || sorted[i] != static_cast<int>(i)) {
      throw BadInput("set_layout: expected each bit from 0 to " + std::to_string(impl_->qubits - 1) + " once");
    }
  }
  impl_->bits = std::move(bits);
  impl_->flips = flips & ~((std::uint64_t{1} << impl_->part_bits) - 1);
}

int State::part_bits() const noexcept { return impl_->part_bits; }

void State::set_part_bits(int bits) {
  if (bits == impl_->part_bits) return;
  if (impl_->in_pieces()) throw BadInput("set_part_bits: expected a state in memory in precision double or single");
  if (bits < 1 || bits > impl_->local_bits) {
    throw BadInput("set_part_bits: expected 1 to " + std::to_string(impl_->local_bits) + " bits, found " +
                   std::to_string(bits));
  }
  std::vector<LocalOperation> local_flips;
  for (int bit = impl_->part_bits; bit < bits; ++bit) {
    if ((impl_->flips >> bit & 1U) != 0) {
      local_flips.push_back({.kind = LocalKind::matrix, .bits = {bit}, .values = {0, 1, 1, 0}});
    }
  }
  impl_->part_bits = bits;
  impl_->flips &= ~((std::uint64_t{1} << bits) - 1);
  apply(local_flips);
}

void State::set_product(std::span<const std::array<std::complex<double>, 2>> wires, std::span<const int> bits) {
  set_layout({bits.begin(), bits.end()}, 0);
  for (std::uint64_t part = 0; part < impl_->parts(); ++part) impl_->set_product_part(wires, part);
}

void State::Impl::set_product_part(std::span<const std::array<std::complex<double>, 2>> wires, std::uint64_t part) {
  const std::uint64_t number = static_cast<std::uint64_t>(group.rank()) * parts() + part;
  std::complex<double> factor = 1;
  std::vector<std::array<std::complex<double>, 2>> local(static_cast<std::size_t>(part_bits));
  for (std::size_t wire = 0; wire < wires.size(); ++wire) {
    const int bit = bits[wire];
    if (bit < part_bits) {
      local[static_cast<std::size_t>(bit)] = wires[wire];
    } else {
      factor *= wires[wire][number >> (bit - part_bits) & 1U];
    }
  }
  // Tabulate the products over the lower bits once, then write each amplitude as an entry times a factor of its higher
  // bits.
  const int low = std::min(part_bits, 12);
  std::vector<std::complex<double>> table;
  table.reserve(std::size_t{1} << low);
  table.push_back(factor);
  for (int bit = 0; bit < low; ++bit) {
    const auto& [zero, one] = local[static_cast<std::size_t>(bit)];
    const std::size_t size = table.size();
    // Written out, because operator* of complex numbers handles infinities.
    const auto times = [](std::complex<double> a, std::complex<double> b) {
      return std::complex<double>(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    };
    for (std::size_t i = 0; i < size; ++i) table.push_back(times(table[i], one));
    for (std::size_t i = 0; i < size; ++i) table[i] = times(table[i], zero);
  }
  if (on_device) {
    std::vector<std::complex<double>> higher;
    for (int bit = low; bit < part_bits; ++bit) {
      const auto& both = local[static_cast<std::size_t>(bit)];
      higher.insert(higher.end(), both.begin(), both.end());
    }
    return on_device->set_product(table, higher);
  }
  const auto fill = [&]<typename T>(std::span<std::complex<T>> all, std::uint64_t first) {
    const auto amplitudes = part_bits < local_bits ? all.subspan(part << part_bits, std::size_t{1} << part_bits) : all;
    base::parallel_for(engine.threads, amplitudes.size(), table.size(), [&](std::uint64_t begin, std::uint64_t) {
      std::complex<double> high = 1;
      for (int bit = low; bit < part_bits; ++bit) {
        high *= local[static_cast<std::size_t>(bit)][(first + begin) >> bit & 1U];
      }
      for (std::size_t i = 0; i < table.size(); ++i) {
        const double re = table[i].real() * high.real() - table[i].imag() * high.imag();
        const double im = table[i].real() * high.imag() + table[i].imag() * high.real();
        amplitudes[begin + i] = {static_cast<T>(re), static_cast<T>(im)};
      }
    });
  };
  change_windows(fill, true);
}

void State::set_basis_state(std::uint64_t index) {
  if (impl_->qubits < 62 && index >> impl_->qubits != 0) {
    throw BadInput("basis state " + std::to_string(index) + " does not exist with " +
                   base::counted(impl_->qubits, "qubit"));
  }
  std::vector<std::array<std::complex<double>, 2>> product;
  std::vector<int> order;
  for (int qubit = 0; qubit < impl_->qubits; ++qubit) {
    product.push_back({});
    product.back()[(index >> qubit) & 1U] = 1;
    order.push_back(qubit);
  }
  set_product(product, order);
}

// Checks amplitudes; returns the factor that makes their norm 1, or 1 if they need none.
static double checked_factor(std::span<const std::complex<double>> amplitudes, Norm rule) {
  if (rule == Norm::any) return 1;
  double sum = 0;
  for (std::size_t i = 0; i < amplitudes.size(); ++i) {
    const double square = std::norm(amplitudes[i]);
    if (!std::isfinite(square)) {
      throw BadInput(
          "set_amplitudes: expected finite amplitudes, found an infinity or NaN, or a square that overflows, "
          "at index " +
          std::to_string(i));
    }
    sum += square;
  }
  const double norm = std::sqrt(sum);
  // The squares of smaller numbers are subnormal or 0, so that the norm would be rounded to a few bits.
  if (rule == Norm::normalize && norm >= 1e-145 && std::isfinite(norm)) return 1 / norm;
  if (!(std::abs(norm - 1) <= 1e-5)) {
    const bool asked = rule == Norm::normalize;
    throw BadInput("set_amplitudes: expected amplitudes of " +
                   std::string(asked ? "a finite norm of 1e-145 or more" : "norm 1 within 1e-5") + ", found the norm " +
                   base::number_text(norm) + (asked ? "" : "; pass normalize=True to divide by it"));
  }
  return 1;
}

// The norm that the ranks' parts have together. Throws Mismatch if another rank has refused its amplitudes (-1).
static double norm_of_parts(const Group& group, double square) {
  double sum = 0;
  const auto all = base::of_one_size(group.allgather(std::as_bytes(std::span(&square, 1))), sizeof square);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    double theirs = 0;
    std::memcpy(&theirs, all[rank].data(), sizeof theirs);
    sum += theirs;
    if (theirs >= 0 || square < 0) continue;
    throw Mismatch("set_amplitudes: expected the same amplitudes on every rank, found others on rank " +
                   std::to_string(rank) + ", which refused them; see its output");
  }
  return std::sqrt(sum);
}

void State::set_amplitudes(std::span<const std::complex<double>> amplitudes, Norm norm) {
  const std::size_t size = std::size_t{1} << impl_->local_bits;
  const std::size_t first = size * static_cast<std::size_t>(impl_->group.rank());
  double factor = 1;
  try {
    if (amplitudes.size() != std::size_t{1} << impl_->qubits) {
      throw BadInput("expected 2^" + std::to_string(impl_->qubits) + " amplitudes, found " +
                     std::to_string(amplitudes.size()));
    }
    factor = checked_factor(amplitudes, norm);
  } catch (const BadInput&) {
    if (norm != Norm::any) norm_of_parts(impl_->group, -1);
    throw;
  }
  if (norm != Norm::any && impl_->group.size() > 1) {
    double square = 0;
    for (const auto& amplitude : amplitudes.subspan(first, size)) square += std::norm(amplitude * factor);
    const double found = norm_of_parts(impl_->group, square);
    if (!(std::abs(found - 1) <= 2e-5)) {
      throw Mismatch(
          "set_amplitudes: expected the same amplitudes on every rank, found arrays of which the parts have "
          "the norm " +
          base::number_text(found));
    }
  }
  std::vector<int> order(impl_->bits.size());
  std::iota(order.begin(), order.end(), 0);
  set_layout(order, 0);
  const auto set = [&](auto local, std::uint64_t begin) {
    using Amplitude = typename decltype(local)::value_type;
    for (std::size_t i = 0; i < local.size(); ++i) local[i] = Amplitude(amplitudes[first + begin + i] * factor);
  };
  impl_->change_windows(set, true);
}

void State::copy_from(const State& other) {
  if (other.qubits() != qubits() || other.precision() != precision() || other.local_bits() != local_bits()) {
    throw BadInput("copy_from: expected a state of " + base::counted(qubits(), "qubit") +
                   " with the same precision and ranks, found one of " + std::to_string(other.qubits()));
  }
  impl_->bits = other.impl_->bits;
  impl_->flips = other.impl_->flips;
  if (impl_->is_encoded() && !impl_->stored && !other.impl_->stored) {
    return impl_->encoded.copy_from(other.impl_->encoded);
  }
  if (impl_->on_device && impl_->device == other.impl_->device)
    return impl_->on_device->copy_from(*other.impl_->on_device);
  impl_->visit([&]<typename T>(std::span<std::complex<T>> local) {
    const auto from = other.local<T>();
    base::parallel_for(impl_->engine.threads, local.size(), std::uint64_t{1} << 16,
                       [&](std::uint64_t begin, std::uint64_t end) {
                         std::memcpy(local.data() + begin, from.data() + begin, (end - begin) * sizeof(local[0]));
                       });
  });
}

EngineCounters State::apply(std::span<const LocalOperation> operations, std::vector<PassRecord>* records) {
  if (operations.empty()) return {};
  EngineOptions options = impl_->engine;
  options.records = records;
  if (impl_->on_device) return impl_->on_device->apply(operations, records);
  if (impl_->stored) return impl_->stored->apply(operations, options, impl_->encoded);
  if (impl_->is_encoded()) return apply_encoded(impl_->encoded, operations, options);
  return impl_->visit(
      [&]<typename T>(std::span<std::complex<T>> local) { return quantum::apply<T>(local, operations, options); });
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
