// The amplitudes of one rank in the memory of a device, and the engine's functions (onehop/quantum/engine.h) on them.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "onehop/quantum/engine.h"
#include "quantum/device/tile_steps.h"
#include "src/device/device.h"
#include "src/device/state_kernels.h"

namespace onehop::quantum {

class DeviceAmplitudes {
 public:
  // 2^bits amplitudes, which are not set. Throws Error, before anything is allocated, if the device has too little
  // memory.
  DeviceAmplitudes(std::shared_ptr<device::Device> device, bool is_double, int bits);

  [[nodiscard]] int bits() const noexcept { return bits_; }
  [[nodiscard]] std::size_t amplitude_bytes() const noexcept { return is_double_ ? 16 : 8; }
  [[nodiscard]] const std::shared_ptr<device::Device>& device() const noexcept { return device_; }

  // As `apply` and `apply_to_both` of the engine. Matrices that fit no tile have at most `max_matrix_bits` bits, or
  // BadInput is thrown before any amplitude changes.
  static constexpr int max_matrix_bits = 10;
  EngineCounters apply(std::span<const LocalOperation> operations, std::vector<PassRecord>* records = nullptr);
  EngineCounters apply_to_both(DeviceAmplitudes& bra, std::span<const LocalOperation> operations,
                               std::span<double> derivatives);

  // Copy between the amplitudes from number `first` on and memory of the processor.
  void read(std::uint64_t first, std::span<std::byte> to) const;
  void write(std::uint64_t first, std::span<const std::byte> from);
  void copy_from(const DeviceAmplitudes& other);
  // The memory of the amplitudes. `swap` exchanges a part of it with other memory in reach; `wait` returns after all
  // work on them is done.
  [[nodiscard]] const device::Memory& memory() const noexcept { return memory_; }
  [[nodiscard]] device::SharedPlace share() { return device_->share(memory_); }
  void swap(std::byte* mine, std::byte* other, std::size_t bytes);
  void wait() const { device_->synchronize(stream_); }
  // Amplitude i becomes table[the lowest bits of i] times, for each higher bit, one of its two factors.
  void set_product(std::span<const std::complex<double>> table, std::span<const std::complex<double>> higher);

  // As `probabilities` of the engine; without bits, the sum of |a|^2.
  void probabilities(std::span<const int> bits, std::span<double> out) const;
  // For each place, the sum of |a|^2 over the amplitudes that have its values at the bits of `mask`.
  void weights(std::span<const std::uint64_t> places, std::uint64_t mask, std::span<double> out) const;
  // As `pauli_products` of these amplitudes, a, and others, b.
  void pauli_products(const DeviceAmplitudes& b, std::span<const LocalPauli> paulis,
                      std::span<std::complex<double>> out) const;
  // As `add_paulis`: adds strings applied to these amplitudes to `out`.
  void add_paulis(std::span<const LocalPauli> paulis, std::span<const std::complex<double>> coefficients,
                  DeviceAmplitudes& out) const;

 private:
  // What a run has beside its own amplitudes.
  struct Both {
    DeviceAmplitudes* bra = nullptr;
    std::span<double> derivatives;
    std::vector<PassRecord>* records = nullptr;
  };
  EngineCounters run(DeviceAmplitudes* bra, std::span<const LocalOperation> operations, std::span<double> derivatives,
                     std::vector<PassRecord>* records);
  template <typename T>
  std::size_t run_batch(const PassList& list, std::size_t first, std::span<const LocalOperation> operations,
                        const Both& both);
  template <typename T>
  void run_tile(const TilePass<T>& pass, const Both& both);
  static void check_direct(const LocalOperation& operation);
  // An operation that fits no tile. Its numbers are at `data` in the memory of the device.
  void run_directly(const LocalOperation& operation, const std::byte* data, const device::Memory& state);
  [[nodiscard]] double product_of(const DeviceAmplitudes& bra, const LocalOperation& operation) const;
  void sum_weights(device::WeightArguments arguments, std::span<double> out) const;
  void sum_products(device::ProductArguments arguments, std::span<std::complex<double>> out) const;
  // Copies bytes to the memory of programs, and returns where they are.
  const std::byte* upload(std::span<const std::byte> bytes) const;
  // Memory for at least so many numbers that a launch writes; and the numbers, once it has.
  [[nodiscard]] double* results(std::size_t count) const;
  [[nodiscard]] std::vector<double> fetch(std::size_t count) const;
  template <typename Arguments>
  void launch(std::string_view kernel, std::uint64_t groups, std::uint32_t threads, std::size_t shared_bytes,
              const Arguments& arguments) const;
  // A launch in which all threads share `count` indices.
  template <typename Arguments>
  void launch_all(std::string_view kernel, std::uint64_t count, const Arguments& arguments) const;

  std::shared_ptr<device::Device> device_;
  device::Stream stream_;
  bool is_double_;
  int bits_;
  device::Memory memory_;
  mutable device::Memory program_;  // what launches read
  mutable device::Memory results_;  // what they write beside amplitudes
};

}  // namespace onehop::quantum
