#include "quantum/device/device_amplitudes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <string>

#include "onehop/error.h"
#include "quantum/engine/engine_diagonal.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

using Number = std::complex<double>;

constexpr std::uint32_t most_threads = 256;
constexpr std::uint64_t most_groups = 1024;  // more work is for the loops of the groups
// What a launch needs beside amplitudes is at most about so much: a batch is closed once it is larger.
constexpr std::size_t most_program_bytes = std::size_t{1} << 24;
constexpr std::size_t most_results = std::size_t{1} << 20;                                            // numbers
constexpr std::array<Number, 4> powers = {Number(1, 0), Number(0, 1), Number(-1, 0), Number(0, -1)};  // of i

// The number of equal parts of a sum over 2^bits numbers, which does not depend on the device, so that sums have the
// same bits on all.
std::uint64_t parts_of(int bits) { return std::uint64_t{1} << std::clamp(bits - 12, 0, 10); }

std::uint64_t mask_of(std::span<const int> bits) {
  std::uint64_t mask = 0;
  for (const int bit : bits) mask |= std::uint64_t{1} << bit;
  return mask;
}

// Appends the offsets of the rows of a matrix, and the matrix.
template <typename T>
std::size_t encode_matrix(const LocalOperation& op, DeviceBytes& bytes) {
  std::vector<std::uint64_t> offsets(std::size_t{1} << op.bits.size());
  for (std::size_t j = 0; j < offsets.size(); ++j) {
    for (std::size_t b = 0; b < op.bits.size(); ++b) offsets[j] |= ((j >> b) & 1) << op.bits[b];
  }
  const std::vector<std::complex<T>> matrix(op.values.begin(), op.values.end());
  const std::size_t begin = bytes.add(std::span<const std::uint64_t>(offsets));
  bytes.add(std::span<const std::complex<T>>(matrix));
  return begin;
}

}  // namespace

DeviceAmplitudes::DeviceAmplitudes(std::shared_ptr<device::Device> device, bool is_double, int bits)
    : device_(std::move(device)),
      stream_(device_->make_stream()),
      is_double_(is_double),
      bits_(bits),
      memory_(device_->allocate(std::max(static_cast<std::int64_t>(amplitude_bytes() << bits), device::shared_block))) {
}

template <typename Arguments>
void DeviceAmplitudes::launch(std::string_view kernel, std::uint64_t groups, std::uint32_t threads,
                              std::size_t shared_bytes, const Arguments& arguments) const {
  const device::Shape shape{static_cast<std::uint32_t>(std::clamp<std::uint64_t>(groups, 1, most_groups)), threads,
                            static_cast<std::uint32_t>(shared_bytes)};
  device_->launch(stream_, "onehop_" + std::string(kernel) + (is_double_ ? "_f64" : "_f32"), shape, arguments);
}

template <typename Arguments>
void DeviceAmplitudes::launch_all(std::string_view kernel, std::uint64_t count, const Arguments& arguments) const {
  launch(kernel, (count + most_threads - 1) / most_threads, most_threads, 0, arguments);
}

const std::byte* DeviceAmplitudes::upload(std::span<const std::byte> bytes) const {
  device_->synchronize(stream_);  // launches may still read what was there
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (program_.bytes() < size) {
    program_ = {};
    program_ = device_->allocate(size);
  }
  device_->copy_in(stream_, program_.data(), bytes.data(), size);
  device_->synchronize(stream_);
  return program_.data();
}

double* DeviceAmplitudes::results(std::size_t count) const {
  const auto size = static_cast<std::int64_t>(count * sizeof(double));
  if (results_.bytes() < size) {
    device_->synchronize(stream_);
    results_ = {};
    results_ = device_->allocate(size);
  }
  return reinterpret_cast<double*>(results_.data());
}

std::vector<double> DeviceAmplitudes::fetch(std::size_t count) const {
  std::vector<double> numbers(count);
  device_->copy_out(stream_, numbers.data(), results_.data(), static_cast<std::int64_t>(count * sizeof(double)));
  device_->synchronize(stream_);
  return numbers;
}

EngineCounters DeviceAmplitudes::apply(std::span<const LocalOperation> operations, std::vector<PassRecord>* records) {
  return run(nullptr, operations, {}, records);
}

EngineCounters DeviceAmplitudes::apply_to_both(DeviceAmplitudes& bra, std::span<const LocalOperation> operations,
                                               std::span<double> derivatives) {
  device_->synchronize(bra.stream_);
  return run(&bra, operations, derivatives, nullptr);
}

EngineCounters DeviceAmplitudes::run(DeviceAmplitudes* bra, std::span<const LocalOperation> operations,
                                     std::span<double> derivatives, std::vector<PassRecord>* records) {
  EngineCounters counters;
  if (operations.empty()) return counters;
  const double begin = base::steady_seconds();
  const PassList list = make_pass_list(bits_, operations, device_tile_sizes(bits_, is_double_, bra != nullptr ? 2 : 1));
  for (const Pass& pass : list.passes) {
    if (pass.tile == 0) check_direct(operations[pass.items.front().index]);
  }
  counters.planning_seconds = base::steady_seconds() - begin;
  counters.passes = static_cast<double>(list.passes.size());
  counters.operations = static_cast<std::int64_t>(operations.size());
  for (std::size_t next = 0; next < list.passes.size();) {
    next = is_double_ ? run_batch<double>(list, next, operations, {bra, derivatives, records})
                      : run_batch<float>(list, next, operations, {bra, derivatives, records});
  }
  device_->synchronize(stream_);
  counters.seconds = base::steady_seconds() - begin;
  return counters;
}

// Runs passes from number `first` on, with the programs of all of them in the memory of the device at once. Returns the
// number of the next one.
template <typename T>
std::size_t DeviceAmplitudes::run_batch(const PassList& list, std::size_t first,
                                        std::span<const LocalOperation> operations, const Both& both) {
  DeviceBytes bytes;
  std::vector<TilePass<T>> tiles;
  std::vector<std::size_t> matrices;
  std::size_t end = first;
  for (; end < list.passes.size() && bytes.bytes().size() < most_program_bytes; ++end) {
    const Pass& pass = list.passes[end];
    const LocalOperation* const direct = pass.tile == 0 ? &operations[pass.items.front().index] : nullptr;
    tiles.push_back(direct == nullptr ? encode_pass<T>(pass, list.items, operations, bits_, bytes) : TilePass<T>());
    const bool has_matrix = direct != nullptr && direct->kind == LocalKind::matrix;
    matrices.push_back(has_matrix ? encode_matrix<T>(*direct, bytes) : 0);
  }
  const std::byte* const program = upload(bytes.bytes());
  for (std::size_t p = first; p < end; ++p) {
    const double begin = base::steady_seconds();
    const Pass& pass = list.passes[p];
    if (pass.tile != 0) {
      tiles[p - first].arguments.program = reinterpret_cast<const unsigned char*>(program);
      run_tile<T>(tiles[p - first], both);
    } else {
      const LocalOperation& op = operations[pass.items.front().index];
      // The probe of a string that fits a tile is in one.
      const TileSizes sizes = device_tile_sizes(bits_, is_double_, 2);
      const bool alone = std::popcount(op.x_mask >> sizes.low) > sizes.tile - sizes.low;
      if (both.bra != nullptr && op.probe >= 0 && alone) {
        both.derivatives[static_cast<std::size_t>(op.probe)] += op.weight * product_of(*both.bra, op);
      }
      run_directly(op, program + matrices[p - first], memory_);
      if (both.bra != nullptr) run_directly(op, program + matrices[p - first], both.bra->memory_);
    }
    if (both.records == nullptr) continue;
    device_->synchronize(stream_);
    PassRecord& record = both.records->emplace_back();
    record.pass = summarize(pass);
    record.begin = begin;
    record.seconds = base::steady_seconds() - begin;
  }
  return end;
}

template <typename T>
void DeviceAmplitudes::run_tile(const TilePass<T>& pass, const Both& both) {
  device::TileArguments arguments = pass.arguments;
  arguments.ket = memory_.data();
  arguments.bra = both.bra != nullptr ? both.bra->memory_.data() : nullptr;
  const std::size_t probes = arguments.probes;
  std::uint64_t groups = std::min(arguments.tiles, most_groups);
  if (probes > 0) {
    groups = std::min<std::uint64_t>(groups, std::max<std::size_t>(1, most_results / probes));
    arguments.sums = results(groups * probes);
  }
  const std::uint32_t tiles = (both.bra != nullptr ? 2U : 1U) + (pass.needs_other ? 1U : 0U);
  launch("tile_pass", groups, std::min(most_threads, 1U << arguments.bits),
         tiles * (sizeof(std::complex<T>) << arguments.bits), arguments);
  if (probes == 0) return;
  const std::vector<double> sums = fetch(groups * probes);
  for (std::size_t p = 0; p < probes; ++p) {
    double sum = 0;
    for (std::size_t g = 0; g < groups; ++g) sum += sums[g * probes + p];
    both.derivatives[static_cast<std::size_t>(pass.results[p])] += pass.factors[p] * sum;
  }
}

void DeviceAmplitudes::check_direct(const LocalOperation& op) {
  if (op.kind != LocalKind::matrix || op.bits.size() <= static_cast<std::size_t>(max_matrix_bits)) return;
  throw BadInput("expected matrices on at most " + std::to_string(max_matrix_bits) +
                 " qubits for a state on a device, found one on " + std::to_string(op.bits.size()) +
                 "; take the device 'cpu'");
}

void DeviceAmplitudes::run_directly(const LocalOperation& op, const std::byte* data, const device::Memory& state) {
  if (op.kind == LocalKind::matrix) {
    device::MatrixArguments arguments{.state = state.data()};
    arguments.offsets = reinterpret_cast<const std::uint64_t*>(data);
    arguments.matrix = data + (sizeof(std::uint64_t) << op.bits.size());
    arguments.mask = mask_of(op.bits) | op.control_mask;
    arguments.values = op.control_values;
    arguments.count = std::uint64_t{1} << (bits_ - std::popcount(arguments.mask));
    arguments.bits = static_cast<std::uint32_t>(op.bits.size());
    const std::uint32_t size = 1U << op.bits.size();
    return launch("apply_matrix", arguments.count, std::min(most_threads, size), amplitude_bytes() * size, arguments);
  }
  if (op.kind != LocalKind::pauli_rotation) throw Error("a pass on a device has an operation that it must not have");
  const Number sent =
      Number(0, -std::sin(op.angle / 2)) * powers[static_cast<std::size_t>(std::popcount(op.x_mask & op.z_mask)) % 4];
  device::RotateArguments arguments{.state = state.data(), .x = op.x_mask, .z = op.z_mask};
  arguments.mask = std::bit_floor(op.x_mask) | op.control_mask;
  arguments.values = op.control_values;
  arguments.count = std::uint64_t{1} << (bits_ - std::popcount(arguments.mask));
  arguments.cosine = std::cos(op.angle / 2);
  arguments.sent_re = sent.real();
  arguments.sent_im = sent.imag();
  launch_all("rotate_string", arguments.count, arguments);
}

// Im <bra| Q P |these amplitudes>.
double DeviceAmplitudes::product_of(const DeviceAmplitudes& bra, const LocalOperation& op) const {
  device::ProductArguments arguments{.a = bra.memory_.data(), .b = memory_.data()};
  arguments.x = op.x_mask;
  arguments.controls = op.control_mask;
  arguments.values = op.control_values;
  arguments.z[0] = op.z_mask;
  Number sum;
  sum_products(arguments, std::span(&sum, 1));
  return (powers[static_cast<std::size_t>(std::popcount(op.x_mask & op.z_mask)) % 4] * sum).imag();
}

void DeviceAmplitudes::read(std::uint64_t first, std::span<std::byte> to) const {
  device_->copy_out(stream_, to.data(), memory_.data() + first * amplitude_bytes(),
                    static_cast<std::int64_t>(to.size()));
  device_->synchronize(stream_);
}

void DeviceAmplitudes::write(std::uint64_t first, std::span<const std::byte> from) {
  device_->copy_in(stream_, memory_.data() + first * amplitude_bytes(), from.data(),
                   static_cast<std::int64_t>(from.size()));
  device_->synchronize(stream_);
}

void DeviceAmplitudes::copy_from(const DeviceAmplitudes& other) {
  device_->copy(stream_, memory_.data(), other.memory_.data(), static_cast<std::int64_t>(amplitude_bytes() << bits_));
  device_->synchronize(stream_);
}

void DeviceAmplitudes::swap(std::byte* mine, std::byte* other, std::size_t bytes) {
  const device::SwapArguments arguments{reinterpret_cast<std::uint64_t*>(mine), reinterpret_cast<std::uint64_t*>(other),
                                        bytes / sizeof(std::uint64_t)};
  const auto groups =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(arguments.count / most_threads, 1, most_groups));
  device_->launch(stream_, "onehop_swap_arrays", {groups, most_threads}, arguments);
}

void DeviceAmplitudes::set_product(std::span<const Number> table, std::span<const Number> higher) {
  DeviceBytes bytes;
  const std::size_t table_at = bytes.add(table);
  const std::size_t higher_at = bytes.add(higher);
  const std::byte* const numbers = upload(bytes.bytes());
  device::ProductStateArguments arguments{.state = memory_.data()};
  arguments.table = reinterpret_cast<const device::Amplitude<double>*>(numbers + table_at);
  arguments.higher = reinterpret_cast<const device::Amplitude<double>*>(numbers + higher_at);
  arguments.size = std::uint64_t{1} << bits_;
  arguments.low = static_cast<std::uint32_t>(std::bit_width(table.size()) - 1);
  arguments.bits = static_cast<std::uint32_t>(arguments.low + higher.size() / 2);
  launch_all("set_product", arguments.size, arguments);
  device_->synchronize(stream_);
}

// Adds the sums of all outputs from arguments.first on to `out`.
void DeviceAmplitudes::sum_weights(device::WeightArguments arguments, std::span<double> out) const {
  const int summed = bits_ - std::popcount(arguments.mask);
  arguments.state = memory_.data();
  arguments.outputs = out.size();
  arguments.parts = out.size() < most_groups ? parts_of(summed) : 1;
  arguments.part_size = (std::uint64_t{1} << summed) / arguments.parts;
  const std::size_t count = arguments.outputs * arguments.parts;
  arguments.by_threads = arguments.part_size < most_threads ? 1 : 0;
  arguments.out = results(count);
  if (arguments.by_threads != 0) {
    launch_all("sum_weights", count, arguments);
  } else {
    launch("sum_weights", count, most_threads, most_threads * sizeof(double), arguments);
  }
  const std::vector<double> sums = fetch(count);
  for (std::size_t i = 0; i < count; ++i) out[i / arguments.parts] += sums[i];
}

void DeviceAmplitudes::probabilities(std::span<const int> bits, std::span<double> out) const {
  device::WeightArguments arguments{.mask = mask_of(bits), .bits = static_cast<std::uint32_t>(bits.size())};
  std::ranges::copy(bits, std::begin(arguments.bit));
  std::ranges::fill(out, 0.0);
  for (; arguments.first < out.size(); arguments.first += most_results) {
    sum_weights(arguments, out.subspan(arguments.first, std::min(most_results, out.size() - arguments.first)));
  }
}

void DeviceAmplitudes::weights(std::span<const std::uint64_t> places, std::uint64_t mask, std::span<double> out) const {
  std::ranges::fill(out, 0.0);
  for (std::size_t begin = 0; begin < places.size(); begin += most_results) {
    const std::size_t count = std::min(most_results, places.size() - begin);
    device::WeightArguments arguments{.mask = mask};
    arguments.places = reinterpret_cast<const std::uint64_t*>(upload(std::as_bytes(places.subspan(begin, count))));
    sum_weights(arguments, out.subspan(begin, count));
  }
}

// The sums of products of the strings in the arguments, at most `device::most_strings`.
void DeviceAmplitudes::sum_products(device::ProductArguments arguments, std::span<Number> out) const {
  constexpr std::size_t numbers = std::size_t{2} * device::most_strings;
  arguments.parts = parts_of(bits_);
  arguments.part_size = (std::uint64_t{1} << bits_) / arguments.parts;
  arguments.strings = static_cast<std::uint32_t>(out.size());
  arguments.out = results(arguments.parts * numbers);
  const auto threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(most_threads, arguments.part_size));
  launch("sum_products", arguments.parts, threads, threads * numbers * sizeof(double), arguments);
  const std::vector<double> sums = fetch(arguments.parts * numbers);
  std::ranges::fill(out, Number(0));
  for (std::size_t part = 0; part < arguments.parts; ++part) {
    for (std::size_t s = 0; s < out.size(); ++s) {
      out[s] += Number(sums[part * numbers + 2 * s], sums[part * numbers + 2 * s + 1]);
    }
  }
}

void DeviceAmplitudes::pauli_products(const DeviceAmplitudes& b, std::span<const LocalPauli> paulis,
                                      std::span<Number> out) const {
  device_->synchronize(b.stream_);
  std::map<std::uint64_t, std::vector<std::size_t>> by_x;
  for (std::size_t i = 0; i < paulis.size(); ++i) by_x[paulis[i].x_mask].push_back(i);
  for (const auto& [x, members] : by_x) {
    for (std::size_t begin = 0; begin < members.size(); begin += device::most_strings) {
      device::ProductArguments arguments{.a = memory_.data(), .b = b.memory_.data(), .x = x};
      std::array<Number, device::most_strings> sums;
      const std::size_t count = std::min<std::size_t>(device::most_strings, members.size() - begin);
      for (std::size_t s = 0; s < count; ++s) arguments.z[s] = paulis[members[begin + s]].z_mask;
      sum_products(arguments, std::span(sums).first(count));
      for (std::size_t s = 0; s < count; ++s) {
        const std::size_t ys = static_cast<std::size_t>(std::popcount(x & arguments.z[s])) % 4;
        out[members[begin + s]] = powers[ys] * sums[s];
      }
    }
  }
}

void DeviceAmplitudes::add_paulis(std::span<const LocalPauli> paulis, std::span<const Number> coefficients,
                                  DeviceAmplitudes& out) const {
  constexpr std::size_t most = most_program_bytes / sizeof(device::AddedString);
  device_->synchronize(out.stream_);
  for (std::size_t begin = 0; begin < paulis.size(); begin += most) {
    std::vector<device::AddedString> strings;
    for (std::size_t i = begin; i < std::min(begin + most, paulis.size()); ++i) {
      const std::size_t ys = static_cast<std::size_t>(std::popcount(paulis[i].x_mask & paulis[i].z_mask)) % 4;
      const Number factor = coefficients[i] * std::conj(powers[ys]);  // signs are of the bits of the result
      strings.push_back({paulis[i].x_mask, paulis[i].z_mask, factor.real(), factor.imag()});
    }
    device::AddArguments arguments{.in = memory_.data(), .out = out.memory_.data()};
    arguments.strings = reinterpret_cast<const device::AddedString*>(upload(std::as_bytes(std::span(strings))));
    arguments.count = strings.size();
    arguments.size = std::uint64_t{1} << bits_;
    launch_all("add_strings", arguments.size, arguments);
    device_->synchronize(stream_);
  }
}

}  // namespace onehop::quantum
