#include "onehop/quantum/state.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "onehop/error.h"
#include "quantum/state/state_impl.h"
#include "src/base/one_size.h"
#include "src/base/text.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"
#include "src/group/require_same.h"

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
void sum_numbers(const Group& group, std::span<T> numbers, const Query* query = nullptr) {
  if (group.size() == 1) return;
  const auto mine = std::as_bytes(std::span<const T>(numbers));
  const Gathered all = query == nullptr ? base::of_one_size(group.allgather(mine), numbers.size_bytes())
                                        : onehop::detail::allgather_same(group, query->function, query->argument, mine);
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
void sum_query(const Group& group, const Query& query, std::span<double> numbers) {
  sum_numbers(group, numbers, &query);
}
void sum_query(const Group& group, const Query& query, std::span<std::complex<double>> numbers) {
  sum_numbers(group, numbers, &query);
}

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
  onehop::detail::require_same(group, "State",
                               {{"qubits", qubits},
                                {"precision", precision},
                                {"staging", options.staging},
                                {"choice of a device", options.device == "cpu"}});
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
AmplitudeFile* State::file() const noexcept { return impl_->stored ? &impl_->stored->file() : nullptr; }
DiskCounters State::disk() const { return impl_->stored ? impl_->stored->file().counters() : DiskCounters(); }
int State::window_bits() const noexcept { return impl_->window_bits(); }

std::vector<std::byte> State::kept(std::uint64_t first, std::size_t count) const {
  std::vector<std::byte> result;
  const std::size_t step = std::min(count, std::size_t{1} << window_bits());
  for (std::uint64_t at = first; at < first + count; at += step) {
    const auto piece = impl_->stored ? impl_->stored->read(at, step) : impl_->kept(at, step);
    result.insert(result.end(), piece.begin(), piece.end());
  }
  return result;
}

void State::set_kept(std::uint64_t first, std::size_t count, std::span<const std::byte> bytes) {
  if (!impl_->stored) return static_cast<void>(std::ranges::copy(bytes, impl_->kept(first, count).begin()));
  const std::size_t step = std::min(count, std::size_t{1} << window_bits());
  const std::size_t each = bytes.size() / (count / step);
  for (std::size_t i = 0; i < count / step; ++i) {
    impl_->stored->replace(first + i * step, step, bytes.subspan(i * each, each));
  }
}

std::array<double, 2> State::encoding() {
  if (impl_->group.size() > 1) impl_->share_scale();
  return {impl_->encoded.scale(), -std::log(fidelity_estimate())};
}

void State::set_encoding(double scale, double lost) {
  impl_->encoded.reset(scale, impl_->group.rank() == 0 ? lost : 0);
}

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

}  // namespace onehop::quantum
