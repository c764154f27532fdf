#include "tests/support/local_operations.h"

#include <cmath>
#include <numeric>

namespace onehop::quantum::testing {
namespace {

const double quarter = std::acos(-1.0) / 2;

}  // namespace

Amplitudes by_definition(const Amplitudes& in, const LocalOperation& op) {
  Amplitudes out(in.size());
  for (std::uint64_t j = 0; j < in.size(); ++j) {
    if ((j & op.control_mask) != op.control_values) {
      out[j] += in[j];
      continue;
    }
    std::uint64_t value = 0;
    for (std::size_t b = 0; b < op.bits.size(); ++b) value |= (j >> op.bits[b] & 1) << b;
    const auto with_value = [&](std::uint64_t v) {
      std::uint64_t i = j;
      for (std::size_t b = 0; b < op.bits.size(); ++b) {
        i &= ~(std::uint64_t{1} << op.bits[b]);
        i |= (v >> b & 1) << op.bits[b];
      }
      return i;
    };
    const std::uint64_t size = std::uint64_t{1} << op.bits.size();
    switch (op.kind) {
      case LocalKind::matrix:
        for (std::uint64_t r = 0; r < size; ++r) out[with_value(r)] += op.values[r * size + value] * in[j];
        break;
      case LocalKind::diagonal:
        out[j] += op.values[value] * in[j];
        break;
      case LocalKind::swap:
        out[with_value((value >> 1) | (value & 1) << 1)] += in[j];
        break;
      case LocalKind::pauli_rotation: {
        Complex factor = 1;  // P|j> = factor |j ^ x_mask>, one Pauli matrix after the other
        for (int bit = 0; bit < 64; ++bit) {
          const bool x = (op.x_mask >> bit & 1) != 0;
          const bool z = (op.z_mask >> bit & 1) != 0;
          const bool one = (j >> bit & 1) != 0;
          if (x && z) factor *= one ? Complex(0, -1) : Complex(0, 1);
          if (!x && z && one) factor = -factor;
        }
        out[j] += std::cos(op.angle / 2) * in[j];
        out[j ^ op.x_mask] += Complex(0, -std::sin(op.angle / 2)) * factor * in[j];
        break;
      }
    }
  }
  return out;
}

int number(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }
double real(Random& random) { return std::normal_distribution<double>()(random); }
Complex complex(Random& random) { return {real(random), real(random)}; }

std::vector<int> shuffled(Random& random, int count) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

std::vector<Complex> random_unitary(Random& random, std::size_t size) {
  std::vector<Complex> rows(size * size);
  for (auto& x : rows) x = complex(random);
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t before = 0; before <= r; ++before) {
      Complex dot = 0;
      double norm = 0;
      for (std::size_t c = 0; c < size; ++c) {
        dot += std::conj(rows[before * size + c]) * rows[r * size + c];
        norm += std::norm(rows[r * size + c]);
      }
      for (std::size_t c = 0; c < size; ++c) {
        rows[r * size + c] =
            before < r ? rows[r * size + c] - dot * rows[before * size + c] : rows[r * size + c] / std::sqrt(norm);
      }
    }
  }
  return rows;
}

Amplitudes random_state(Random& random, int bits) {
  Amplitudes state(std::size_t{1} << bits);
  double norm = 0;
  for (auto& a : state) norm += std::norm(a = complex(random));
  for (auto& a : state) a /= std::sqrt(norm);
  return state;
}

std::uint64_t mask_of(const std::vector<int>& bits) {
  std::uint64_t mask = 0;
  for (const int bit : bits) mask |= std::uint64_t{1} << bit;
  return mask;
}

std::vector<Complex> one_bit_gate(Random& random) {
  const double h = std::sqrt(0.5);
  const Complex i(0, 1);
  switch (number(random, 0, 9)) {
    case 0:
      return {h, h, h, -h};
    case 1:
      return {0, 1, 1, 0};
    case 2:
      return {0, -i, i, 0};
    case 3:
      return {1, 0, 0, std::polar(1.0, real(random))};
    case 4:
      return {1, 0, 0, i};
    case 5:
      return {0.5 + 0.5 * i, 0.5 - 0.5 * i, 0.5 - 0.5 * i, 0.5 + 0.5 * i};
    case 6:
      return {1, 0, 0, 1};
    case 7: {  // a rotation by nearly pi
      const double angle = quarter - 1e-5;
      return {std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)};
    }
    default:
      return random_unitary(random, 2);
  }
}

LocalOperation random_operation(Random& random, int bits, int max_bits) {
  std::vector<int> order = shuffled(random, bits);
  const auto take = [&](int most) {
    const int count = std::min(most, static_cast<int>(order.size()));
    std::vector<int> taken(order.end() - count, order.end());
    order.resize(order.size() - static_cast<std::size_t>(count));
    return taken;
  };
  LocalOperation op;
  switch (number(random, 0, 7)) {
    case 0:
    case 1:
    case 2:
      op.kind = LocalKind::matrix;
      op.bits = take(1);
      op.values = one_bit_gate(random);
      break;
    case 3:
      op.kind = LocalKind::matrix;
      op.bits = take(number(random, 1, std::max(1, max_bits)));
      op.values = random_unitary(random, std::size_t{1} << op.bits.size());
      if (number(random, 0, 3) == 0) {  // of a channel: not unitary
        for (auto& x : op.values) x = number(random, 0, 2) == 0 ? Complex(0) : complex(random) * 0.5;
      }
      break;
    case 4:
    case 5:
      op.kind = LocalKind::diagonal;
      op.bits = take(number(random, 0, number(random, 0, 4) == 0 ? 8 : 3));
      for (std::size_t j = 0; j < std::size_t{1} << op.bits.size(); ++j) {
        op.values.push_back(std::polar(1.0, 3 * real(random)));
      }
      if (number(random, 0, 3) == 0) op.values.back() = number(random, 0, 1);
      if (number(random, 0, 3) == 0) std::fill(op.values.begin(), op.values.end() - 1, Complex(1));
      break;
    case 6:
      op.kind = bits < 2 ? LocalKind::diagonal : LocalKind::swap;
      op.bits = take(2);
      if (bits < 2) op.values = {1, -1};
      break;
    default:
      op.kind = LocalKind::pauli_rotation;
      op.angle = number(random, 0, 3) == 0 ? quarter * number(random, -4, 4) : real(random);
      for (const int bit : take(number(random, 1, number(random, 0, 1) == 0 ? 2 : bits))) {
        const int which = number(random, 1, 3);
        if ((which & 1) != 0) op.x_mask |= std::uint64_t{1} << bit;
        if ((which & 2) != 0) op.z_mask |= std::uint64_t{1} << bit;
      }
      break;
  }
  if (number(random, 0, 2) == 0) {
    op.control_mask = mask_of(take(number(random, 1, 3)));
    op.control_values = op.control_mask & (number(random, 0, 1) == 0 ? ~std::uint64_t{0} : random());
  }
  return op;
}

Amplitudes by_definition(Amplitudes state, const std::vector<LocalOperation>& operations, double& most) {
  most = 1;
  for (const LocalOperation& op : operations) {
    state = by_definition(state, op);
    for (const Complex& a : state) most = std::max(most, std::abs(a));
  }
  return state;
}

}  // namespace onehop::quantum::testing
