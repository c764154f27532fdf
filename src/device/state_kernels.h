// Kernels on the amplitudes of a state that need no tile: operations that do not fit one, sums, and exchanges.
#pragma once

#include "src/device/tile_kernel.h"

namespace onehop::device {

// A matrix on many bits: a group copies the 2^bits amplitudes that it mixes to its shared memory.
struct MatrixArguments {
  void* state = nullptr;
  const void* matrix = nullptr;       // row by row
  const uint64_t* offsets = nullptr;  // of the rows
  uint64_t mask = 0;                  // of its bits and its controls
  uint64_t values = 0;                // of the controls
  uint64_t count = 0;
  uint32_t bits = 0;
  uint32_t unused = 0;
};

template <class Number, class Team>
void apply_matrix(Team& team, const MatrixArguments& arguments) {
  const auto state = global(static_cast<Amplitude<Number>*>(arguments.state));
  const auto* const matrix = static_cast<const Amplitude<Number>*>(arguments.matrix);
  auto* const old = team.template shared<Amplitude<Number>>();
  const uint32_t size = 1U << arguments.bits;
  for (uint64_t k = team.group(); k < arguments.count; k += team.groups()) {
    const uint64_t base = insert_zeros(k, arguments.mask) | arguments.values;
    team.each([&](uint32_t thread) {
      for (uint32_t r = thread; r < size; r += team.threads()) {
        const uint64_t place = base | arguments.offsets[r];
        old[r] = {state[place].re, state[place].im};
      }
    });
    team.each([&](uint32_t thread) {
      for (uint32_t r = thread; r < size; r += team.threads()) {
        Amplitude<Number> sum{0, 0};
        for (uint32_t c = 0; c < size; ++c) sum = sum + matrix[uint64_t{r} * size + c] * old[c];
        const uint64_t place = base | arguments.offsets[r];
        state[place].re = sum.re;
        state[place].im = sum.im;
      }
    });
  }
}

// A rotation about a Pauli string: an amplitude gets `cosine` times itself, and `sent` times its partner with the sign
// of the partner's bits in z.
struct RotateArguments {
  void* state = nullptr;
  uint64_t x = 0, z = 0;
  uint64_t mask = 0;  // the controls and the top bit of x
  uint64_t values = 0;
  uint64_t count = 0;
  double cosine = 1, sent_re = 0, sent_im = 0;
};

template <class Number, class Team>
void rotate_string(Team& team, const RotateArguments& arguments) {
  const auto state = global(static_cast<Amplitude<Number>*>(arguments.state));
  const auto cosine = static_cast<Number>(arguments.cosine);
  const Amplitude<Number> sent{static_cast<Number>(arguments.sent_re), static_cast<Number>(arguments.sent_im)};
  for_each_index(team, arguments.count, [&](uint64_t k) {
    const uint64_t i = insert_zeros(k, arguments.mask) | arguments.values;
    const uint64_t j = i ^ arguments.x;
    const Amplitude<Number> a{state[i].re, state[i].im};
    const Amplitude<Number> b{state[j].re, state[j].im};
    const Number sign_a = odd_bits(i & arguments.z) != 0 ? -1 : 1;
    const Number sign_b = odd_bits(j & arguments.z) != 0 ? -1 : 1;
    const Amplitude<Number> to_a = Amplitude<Number>{sign_b * sent.re, sign_b * sent.im} * b;
    const Amplitude<Number> to_b = Amplitude<Number>{sign_a * sent.re, sign_a * sent.im} * a;
    state[i].re = cosine * a.re + to_a.re;
    state[i].im = cosine * a.im + to_a.im;
    if (arguments.x == 0) return;
    state[j].re = cosine * b.re + to_b.re;
    state[j].im = cosine * b.im + to_b.im;
  });
}

// Sums of squared amplitudes: out[o * parts + p] is the sum over part p of the amplitudes at a place with all values of
// the bits outside `mask`. The place of output o is places[o], or has the value o at the bits of `mask`, bit b of it at
// bit[b]; the outputs begin with number `first`. A group makes a sum, or each of its threads one.
struct WeightArguments {
  const void* state = nullptr;
  const uint64_t* places = nullptr;
  double* out = nullptr;
  uint64_t outputs = 0, parts = 0, first = 0;
  uint64_t mask = 0;
  uint64_t part_size = 0;
  uint32_t bits = 0;  // of o, without places
  uint32_t by_threads = 0;
  unsigned char bit[24] = {};
};

template <class Number, class Team>
void sum_weights(Team& team, const WeightArguments& arguments) {
  const auto state = global(static_cast<const Amplitude<Number>*>(arguments.state));
  const uint64_t count = arguments.outputs * arguments.parts;
  const auto sum = [&](uint64_t number, uint64_t first, uint64_t step) {
    const uint64_t output = number / arguments.parts;
    const uint64_t begin = number % arguments.parts * arguments.part_size;
    uint64_t place = 0;
    if (arguments.places != nullptr) place = arguments.places[output];
    for (uint32_t b = 0; b < arguments.bits; ++b) {
      place |= ((output + arguments.first) >> b & 1U) << arguments.bit[b];
    }
    double total = 0;
    for (uint64_t i = begin + first; i < begin + arguments.part_size; i += step) {
      const uint64_t at = insert_zeros(i, arguments.mask) | place;
      total += double{state[at].re} * state[at].re + double{state[at].im} * state[at].im;
    }
    return total;
  };
  if (arguments.by_threads != 0) {
    for_each_index(team, count, [&](uint64_t number) { arguments.out[number] = sum(number, 0, 1); });
    return;
  }
  auto* const scratch = team.template shared<double>();
  for (uint64_t number = team.group(); number < count; number += team.groups()) {
    team.each([&](uint32_t thread) { scratch[thread] = sum(number, thread, team.threads()); });
    add_over_threads(team, scratch, 1);
    team.each([&](uint32_t thread) {
      if (thread == 0) arguments.out[number] = scratch[0];
    });
  }
}

// Sums of products for Pauli strings with one x: out[(p * most_strings + s) * 2] is the sum over part p of
// conj(a[i ^ x]) b[i] with the sign of the bits of i in z[s], where the controls have their values.
inline constexpr uint32_t most_strings = 8;
struct ProductArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  double* out = nullptr;
  uint64_t parts = 0, part_size = 0;
  uint64_t x = 0;
  uint64_t controls = 0, values = 0;
  uint64_t z[most_strings] = {};
  uint32_t strings = 0;
  uint32_t unused = 0;
};

template <class Number, class Team>
void sum_products(Team& team, const ProductArguments& arguments) {
  const auto left = global(static_cast<const Amplitude<Number>*>(arguments.a));
  const auto right = global(static_cast<const Amplitude<Number>*>(arguments.b));
  auto* const scratch = team.template shared<double>();
  const uint32_t threads = team.threads();
  for (uint64_t part = team.group(); part < arguments.parts; part += team.groups()) {
    const uint64_t begin = part * arguments.part_size;
    team.each([&](uint32_t thread) {
      double sums[2 * most_strings] = {};
      for (uint64_t i = begin + thread; i < begin + arguments.part_size; i += threads) {
        if ((i & arguments.controls) != arguments.values) continue;
        const uint64_t j = i ^ arguments.x;
        const double re = double{left[j].re} * right[i].re + double{left[j].im} * right[i].im;
        const double im = double{left[j].re} * right[i].im - double{left[j].im} * right[i].re;
        for (uint32_t s = 0; s < most_strings; ++s) {
          const double sign = odd_bits(i & arguments.z[s]) != 0 ? -1 : 1;
          sums[uint64_t{2} * s] += sign * re;
          sums[uint64_t{2} * s + 1] += sign * im;
        }
      }
      for (uint64_t n = 0; n < uint64_t{2} * most_strings; ++n) scratch[n * threads + thread] = sums[n];
    });
    add_over_threads(team, scratch, 2 * arguments.strings);
    team.each([&](uint32_t thread) {
      for (uint64_t n = thread; n < uint64_t{2} * arguments.strings; n += threads) {
        arguments.out[part * 2 * most_strings + n] = scratch[n * threads];
      }
    });
  }
}

// Adds Pauli strings applied to a state: out[j] grows by factor * in[j ^ x] with the sign of the bits of j in z.
struct AddedString {
  uint64_t x = 0, z = 0;
  double re = 0, im = 0;
};
struct AddArguments {
  const void* in = nullptr;
  void* out = nullptr;
  const AddedString* strings = nullptr;
  uint64_t count = 0;
  uint64_t size = 0;
};

template <class Number, class Team>
void add_strings(Team& team, const AddArguments& arguments) {
  const auto in = global(static_cast<const Amplitude<Number>*>(arguments.in));
  const auto out = global(static_cast<Amplitude<Number>*>(arguments.out));
  for_each_index(team, arguments.size, [&](uint64_t j) {
    Amplitude<Number> sum{out[j].re, out[j].im};
    for (uint64_t s = 0; s < arguments.count; ++s) {
      const AddedString& one = arguments.strings[s];
      const uint64_t i = j ^ one.x;
      const double sign = odd_bits(j & one.z) != 0 ? -1 : 1;
      sum = sum + Amplitude<Number>{static_cast<Number>(sign * one.re), static_cast<Number>(sign * one.im)} *
                      Amplitude<Number>{in[i].re, in[i].im};
    }
    out[j].re = sum.re;
    out[j].im = sum.im;
  });
}

// Sets a product of one-bit states: table[the lowest bits] times, for every higher bit, one of its two numbers.
struct ProductStateArguments {
  void* state = nullptr;
  const Amplitude<double>* table = nullptr;
  const Amplitude<double>* higher = nullptr;
  uint64_t size = 0;
  uint32_t low = 0;
  uint32_t bits = 0;
};

template <class Number, class Team>
void set_product(Team& team, const ProductStateArguments& arguments) {
  const auto state = global(static_cast<Amplitude<Number>*>(arguments.state));
  for_each_index(team, arguments.size, [&](uint64_t i) {
    Amplitude<double> factor{1, 0};
    for (uint32_t b = arguments.low; b < arguments.bits; ++b) {
      factor = factor * arguments.higher[uint64_t{2} * (b - arguments.low) + (i >> b & 1U)];
    }
    factor = arguments.table[i & ((uint64_t{1} << arguments.low) - 1)] * factor;
    state[i].re = static_cast<Number>(factor.re);
    state[i].im = static_cast<Number>(factor.im);
  });
}

// Exchanges the contents of two arrays of 8-byte words, one of which may be in the memory of another card.
struct SwapArguments {
  uint64_t* a = nullptr;
  uint64_t* b = nullptr;
  uint64_t count = 0;
};

template <class Team>
void swap_arrays(Team& team, const SwapArguments& arguments) {
  const auto a = global(arguments.a);
  const auto b = global(arguments.b);
  for_each_index(team, arguments.count, [&](uint64_t i) {
    const uint64_t kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  });
}

}  // namespace onehop::device
