// States on a device: operations, derivatives and sums of the kernels on the processor against the definition, the
// engine, and sums over amplitudes.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "onehop/error.h"
#include "quantum/device/device_amplitudes.h"
#include "quantum/engine/engine_direct.h"
#include "tests/support/local_operations.h"
#include "tests/support/thrown.h"

namespace onehop::quantum {
namespace {

using namespace testing;

template <typename T>
DeviceAmplitudes on_device(const std::vector<std::complex<T>>& state) {
  DeviceAmplitudes result(device::Device::processor(), sizeof(T) == 8, std::bit_width(state.size()) - 1);
  result.write(0, std::as_bytes(std::span(state)));
  return result;
}

template <typename T>
std::vector<std::complex<T>> from_device(const DeviceAmplitudes& state) {
  std::vector<std::complex<T>> result(std::size_t{1} << state.bits());
  state.read(0, std::as_writable_bytes(std::span(result)));
  return result;
}

template <typename T>
void expect_operations(const std::vector<LocalOperation>& operations, const Amplitudes& start,
                       const Amplitudes& expected, double tolerance) {
  DeviceAmplitudes state = on_device(as<T>(start));
  state.apply(operations);
  ASSERT_LT(distance(expected, from_device<T>(state)), tolerance);
}

void expect_same(const std::vector<LocalOperation>& operations, const Amplitudes& start, const std::string& what) {
  SCOPED_TRACE(what);
  double most = 1;
  const Amplitudes expected = by_definition(start, operations, most);
  const double each = 1 + static_cast<double>(operations.size());
  expect_operations<double>(operations, start, expected, 1e-14 * each * most);
  expect_operations<float>(operations, start, expected, 1e-6 * each * most);
}

TEST(DeviceState, OneOperationOfEveryKind) {
  Random random(1);
  for (int bits = 1; bits <= 9; ++bits) {
    for (int round = 0; round < 40; ++round) {
      const LocalOperation op = random_operation(random, bits, 8);
      expect_same({op}, random_state(random, bits),
                  std::to_string(bits) + " bits, kind " + std::to_string(static_cast<int>(op.kind)));
    }
  }
}

TEST(DeviceState, Circuits) {
  Random random(2);
  for (int bits = 1; bits <= 18; ++bits) {
    std::vector<LocalOperation> operations;
    for (int i = 0; i < (bits < 13 ? 40 : 12); ++i)
      operations.push_back(random_operation(random, bits, bits < 13 ? 6 : 3));
    const Amplitudes start = random_state(random, bits);
    if (bits < 13) {
      expect_same(operations, start, std::to_string(bits) + " bits");
      continue;
    }
    Amplitudes expected = start;
    apply<double>(expected, operations);
    expect_operations<double>(operations, start, expected, 1e-13);
    expect_operations<float>(operations, start, expected, 1e-5);
  }
}

// A phase that relied on the order of its threads, as a missing barrier does, would give other amplitudes.
TEST(DeviceState, ThreadsMayRunInAnyOrder) {
  constexpr int bits = 12;
  Random random(7);
  std::vector<LocalOperation> operations;
  for (int i = 0; i < 40; ++i) operations.push_back(random_operation(random, bits, 4));
  double most = 1;
  const Amplitudes start = random_state(random, bits);
  const Amplitudes expected = by_definition(start, operations, most);
  const PassList list = make_pass_list(bits, operations, device_tile_sizes(bits, true));
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    Amplitudes state = start;
    for (const Pass& pass : list.passes) {
      if (pass.tile == 0) {
        apply_directly<double>(state, operations[pass.items.front().index], 1);
        continue;
      }
      DeviceBytes bytes;
      auto arguments = encode_pass<double>(pass, list.items, operations, bits, bytes).arguments;
      arguments.program = reinterpret_cast<const unsigned char*>(bytes.bytes().data());
      arguments.ket = state.data();
      Amplitudes shared(std::size_t{2} << arguments.bits);
      const device::Shape shape{.groups = 2, .threads = 64};
      for (const std::uint32_t group : {1U, 0U}) {
        device::LoopTeam team(shape, group, shared.data(), seed);
        device::tile_pass<double>(team, arguments);
      }
    }
    EXPECT_LT(distance(expected, state), 1e-12 * most) << "seed " << seed;
  }
}

TEST(DeviceState, MatricesBeyondTheLimitAreRefused) {
  Random random(3);
  const Amplitudes start = random_state(random, 11);
  DeviceAmplitudes state = on_device(start);
  LocalOperation op{.kind = LocalKind::matrix, .bits = shuffled(random, 11)};
  op.bits.resize(10);
  op.values.assign(std::size_t{1} << 20, 0);
  for (std::size_t i = 0; i < 1024; ++i) op.values[i * 1024 + (i ^ 5U)] = Complex(0, 1);
  state.apply(std::span(&op, 1));
  EXPECT_LT(distance(by_definition(start, op), from_device<double>(state)), 1e-14);
  const Amplitudes before = from_device<double>(state);
  const LocalOperation x{.kind = LocalKind::matrix, .bits = {0}, .values = {0, 1, 1, 0}};
  op.bits = shuffled(random, 11);
  op.values.assign(std::size_t{1} << 22, 1);
  const std::vector<LocalOperation> both = {x, op};
  EXPECT_EQ(onehop::testing::message_of<BadInput>([&] { state.apply(both); }),
            "expected matrices on at most 10 qubits for a state on a device, found one on 11; take the device 'cpu'");
  EXPECT_EQ(before, from_device<double>(state));
}

// The derivatives of the engine, which its own tests compare with the definition.
template <typename T>
void expect_both(Random& random, int bits, double tolerance) {
  std::vector<LocalOperation> operations;
  int probes = 0;
  for (int i = 0; i < 40; ++i) {
    LocalOperation op{.kind = LocalKind::pauli_rotation, .varies = true, .weight = real(random), .probe = probes};
    for (const int bit : shuffled(random, bits)) {
      const int which = number(random, 0, i % 3 == 0 ? 4 : 3 * bits);
      if (which > 4) continue;
      if (which < 2) op.x_mask |= std::uint64_t{1} << bit;
      if (which == 1 || which == 2) op.z_mask |= std::uint64_t{1} << bit;
      if (which == 3) op.control_mask |= std::uint64_t{1} << bit;
      if (which == 3 && i % 2 == 0) op.control_values |= std::uint64_t{1} << bit;
    }
    if (i % 5 == 4) {
      op.kind = LocalKind::diagonal;
      op.x_mask = op.z_mask = 0;
      op.values = {1};
    }
    if (op.kind == LocalKind::pauli_rotation && (op.x_mask | op.z_mask) == 0) {
      op = random_operation(random, bits, 1);
      if (op.kind != LocalKind::swap && op.kind != LocalKind::pauli_rotation) continue;
    } else {
      set_angle(op, i == 7 ? 3.141592653589793 / op.weight : 3 * real(random));
      ++probes;
    }
    operations.push_back(op);
  }
  Amplitudes ket = random_state(random, bits);
  Amplitudes bra = random_state(random, bits);
  DeviceAmplitudes device_ket = on_device(as<T>(ket));
  DeviceAmplitudes device_bra = on_device(as<T>(bra));
  std::vector<double> expected(static_cast<std::size_t>(probes));
  std::vector<double> found(expected.size());
  apply_to_both<double>(ket, bra, operations, expected);
  device_ket.apply_to_both(device_bra, operations, found);
  EXPECT_LT(distance(ket, from_device<T>(device_ket)), tolerance);
  EXPECT_LT(distance(bra, from_device<T>(device_bra)), tolerance);
  for (std::size_t d = 0; d < found.size(); ++d) EXPECT_NEAR(found[d], expected[d], 10 * tolerance) << "probe " << d;
}

TEST(DeviceState, DerivativesOfTwoStates) {
  Random random(4);
  for (int bits = 1; bits <= 15; ++bits) {
    SCOPED_TRACE(bits);
    expect_both<double>(random, bits, 1e-12);
    expect_both<float>(random, bits, 2e-5);
  }
}

template <typename T>
void expect_sums(Random& random, int bits, double tolerance) {
  SCOPED_TRACE(bits);
  const auto a = as<T>(random_state(random, bits));
  const auto b = as<T>(random_state(random, bits));
  const DeviceAmplitudes on_a = on_device(a);
  DeviceAmplitudes on_b = on_device(b);
  double norm = 0;
  on_a.probabilities({}, std::span(&norm, 1));
  EXPECT_NEAR(norm, norm_squared<T>(a), tolerance);
  for (const int count : {1, bits / 2, std::min(bits, 12), bits}) {
    std::vector<int> some = shuffled(random, bits);
    some.resize(static_cast<std::size_t>(count));
    std::vector<double> found(std::size_t{1} << count);
    std::vector<double> expected(found.size());
    on_a.probabilities(some, found);
    probabilities<T>(a, some, expected);
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance);
    // The same sums, by places.
    std::vector<std::uint64_t> places(found.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (int k = 0; k < count; ++k) places[i] |= (i >> k & 1) << some[static_cast<std::size_t>(k)];
    }
    std::vector<double> by_place(found.size());
    on_a.weights(places, mask_of(some), by_place);
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(by_place[i], expected[i], tolerance);
  }
  std::vector<LocalPauli> paulis;
  std::vector<Complex> factors;
  for (int i = 0; i < 21; ++i) {
    const std::uint64_t all = (std::uint64_t{1} << bits) - 1;
    paulis.push_back({i % 2 == 0 ? all & 5U : random() & all, random() & all});
    factors.push_back(complex(random));
  }
  std::vector<Complex> products(paulis.size());
  std::vector<Complex> expected(paulis.size());
  on_a.pauli_products(on_b, paulis, products);
  pauli_products<T>(a, b, paulis, expected);
  for (std::size_t i = 0; i < products.size(); ++i) EXPECT_LT(std::abs(products[i] - expected[i]), tolerance) << i;
  auto sum = b;
  add_paulis<T>(a, paulis, factors, sum);
  on_a.add_paulis(paulis, factors, on_b);
  EXPECT_LT(distance({sum.begin(), sum.end()}, from_device<T>(on_b)), 100 * tolerance);
}

TEST(DeviceState, SumsOverAmplitudes) {
  Random random(5);
  for (int bits = 1; bits <= 17; bits += bits < 12 ? 1 : 5) {
    expect_sums<double>(random, bits, 1e-13);
    expect_sums<float>(random, bits, 1e-6);
  }
}

TEST(DeviceState, ProductsOfOneBitStates) {
  Random random(6);
  for (const int bits : {1, 3, 7, 12}) {
    std::vector<std::array<Complex, 2>> wires;
    for (int bit = 0; bit < bits; ++bit) wires.push_back({complex(random), complex(random)});
    const int low = bits / 2;
    std::vector<Complex> table(std::size_t{1} << low, 1);
    std::vector<Complex> higher;
    Amplitudes expected(std::size_t{1} << bits, 1);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (std::size_t bit = 0; bit < wires.size(); ++bit) expected[i] *= wires[bit][i >> bit & 1];
    }
    for (std::size_t i = 0; i < table.size(); ++i) {
      for (std::size_t bit = 0; bit < static_cast<std::size_t>(low); ++bit) table[i] *= wires[bit][i >> bit & 1];
    }
    for (auto bit = static_cast<std::size_t>(low); bit < wires.size(); ++bit) {
      higher.insert(higher.end(), wires[bit].begin(), wires[bit].end());
    }
    DeviceAmplitudes state(device::Device::processor(), true, bits);
    state.set_product(table, higher);
    EXPECT_LT(distance(expected, from_device<double>(state)), 1e-13);
    DeviceAmplitudes copy(device::Device::processor(), true, bits);
    copy.copy_from(state);
    EXPECT_EQ(from_device<double>(state), from_device<double>(copy));
  }
}

}  // namespace
}  // namespace onehop::quantum
