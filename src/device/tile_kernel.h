// The kernel of a pass over the amplitudes of a state: a group loads one tile after the other into its shared memory,
// the amplitudes that differ in a set of index bits, runs the steps of the pass's program on it, and stores it again.
// quantum/device/tile_steps.cc makes the programs.
#pragma once

#include "src/device/team.h"

namespace onehop::device {

template <class Number>
struct Amplitude {
  Number re, im;

  friend Amplitude operator+(Amplitude a, Amplitude b) { return {a.re + b.re, a.im + b.im}; }
  friend Amplitude operator*(Amplitude a, Amplitude b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};

inline uint32_t odd_bits(uint64_t value) { return static_cast<uint32_t>(__builtin_popcountll(value)) & 1U; }

// The value with zeros inserted at the bits of a mask, which is one loop for each run of ones in it.
inline uint64_t insert_zeros(uint64_t value, uint64_t mask) {
  while (mask != 0) {
    const auto place = static_cast<uint32_t>(__builtin_ctzll(mask));
    const uint64_t rest = ~(mask >> place);
    const uint32_t run = rest == 0 ? 64 : static_cast<uint32_t>(__builtin_ctzll(rest));
    const uint64_t low = (uint64_t{1} << place) - 1;
    if (place + run >= 64) return value & low;
    value = ((value & ~low) << run) | (value & low);
    mask = mask >> (place + run) << (place + run);
  }
  return value;
}

// What DeviceBytes (quantum/device/tile_steps.h) places behind so many bytes begins here.
inline uint64_t next_piece(uint64_t bytes) { return (bytes + 15) / 16 * 16; }

// Adds the numbers of all threads: scratch[n * threads + t], of which scratch[n * threads] becomes the sum over t.
template <class Team>
void add_over_threads(Team& team, double* scratch, uint32_t numbers) {
  const uint32_t threads = team.threads();  // a power of two
  for (uint32_t half = threads / 2; half > 0; half /= 2) {
    team.each([&](uint32_t thread) {
      if (thread >= half) return;
      for (uint64_t n = 0; n < numbers; ++n) scratch[n * threads + thread] += scratch[n * threads + thread + half];
    });
  }
}

enum class TileStepKind : uint32_t { turns, phases, pair, dense, table, probe };

// A step. Masks of the place inside the tile (x, z, controls) and of the whole index outside it (outer_...). `data`:
// the offset in the program of the numbers that the kind needs.
struct TileStep {
  TileStepKind kind = TileStepKind::turns;
  uint32_t count = 0;
  uint32_t x = 0, z = 0, controls = 0, values = 0;
  uint64_t outer_z = 0, outer_controls = 0, outer_values = 0;
  uint64_t data = 0;
};

// Multiplies amplitudes where the bits of the masks have these values, or an odd number of them is set.
struct TilePhase {
  double re = 1, im = 0;
  uint64_t outer_mask = 0, outer_values = 0;
  uint32_t mask = 0, values = 0;
  uint32_t odd = 0;
  uint32_t unused = 0;
};

// The place of bit b of the index of a table: inside the tile, or in the whole index.
struct TableBit {
  uint32_t bit = 0;
  uint32_t outside = 0;
};

struct TileArguments {
  void* ket = nullptr;
  void* bra = nullptr;  // nullptr: one state
  const unsigned char* program = nullptr;
  double* sums = nullptr;  // of each group, one for each probe
  uint64_t tile = 0;       // the mask of the bits inside
  uint64_t tiles = 0;
  uint64_t rows = 0;  // the offset in the program of the offsets of rows: 2^low consecutive amplitudes each
  uint64_t steps = 0;
  uint32_t step_count = 0;
  uint32_t bits = 0, low = 0;
  uint32_t probes = 0;
};

// What the steps on a tile share. `other` is a tile for results that must not overwrite what threads still read, or the
// sums of threads.
template <class Number>
struct TileMemory {
  Amplitude<Number>* first;  // the tiles of the states, one after the other
  Amplitude<Number>* other;
  uint32_t states;
  uint32_t bits;
  uint64_t base;

  // Not an array, which a card would keep in memory.
  [[nodiscard]] Amplitude<Number>* state(uint32_t s) const { return first + (uint64_t{s} << bits); }
};

template <class T>
const T* data_at(const TileArguments& arguments, uint64_t offset) {
  return reinterpret_cast<const T*>(arguments.program + offset);
}

// Rotations of `Count` bits, with the cosine and the sine of each.
template <uint32_t Count, class Number, class Team>
void turn_bits(Team& team, const TileMemory<Number>& memory, uint32_t mask, const Number* turns) {
  team.each([&](uint32_t thread) {
    uint32_t bit[Count];
    for (uint32_t b = 0, rest = mask; b < Count; ++b, rest &= rest - 1) bit[b] = rest & (~rest + 1);
    for (uint32_t q = thread; q < memory.states << (memory.bits - Count); q += team.threads()) {
      Amplitude<Number>* const tile = memory.state(q >> (memory.bits - Count));
      auto at = static_cast<uint32_t>(insert_zeros(q & ((1U << (memory.bits - Count)) - 1), mask));
      Amplitude<Number> a[1U << Count];
      for (uint32_t k = 0; k < 1U << Count; ++k) {
        uint32_t place = at;
        for (uint32_t b = 0; b < Count; ++b) place += (k >> b & 1U) * bit[b];
        a[k] = tile[place];
      }
      for (uint32_t b = 0; b < Count; ++b) {
        const Number cosine = turns[uint64_t{2} * b];
        const Number sine = turns[uint64_t{2} * b + 1];
        for (uint32_t k = 0; k < 1U << Count; ++k) {
          if ((k >> b & 1U) != 0) continue;
          const Amplitude<Number> zero = a[k];
          const Amplitude<Number> one = a[k | 1U << b];
          a[k] = {cosine * zero.re - sine * one.re, cosine * zero.im - sine * one.im};
          a[k | 1U << b] = {sine * zero.re + cosine * one.re, sine * zero.im + cosine * one.im};
        }
      }
      for (uint32_t k = 0; k < 1U << Count; ++k) {
        uint32_t place = at;
        for (uint32_t b = 0; b < Count; ++b) place += (k >> b & 1U) * bit[b];
        tile[place] = a[k];
      }
    }
  });
}

template <class Number, class Team>
void run_phases(Team& team, const TileMemory<Number>& memory, const TilePhase* phases, uint32_t count) {
  const uint32_t size = 1U << memory.bits;
  team.each([&](uint32_t thread) {
    for (uint32_t j = thread; j < size; j += team.threads()) {
      Amplitude<Number> factor{1, 0};
      for (uint32_t p = 0; p < count; ++p) {
        const TilePhase& phase = phases[p];
        const bool holds =
            phase.odd != 0 ? (odd_bits(memory.base & phase.outer_mask) ^ odd_bits(j & phase.mask)) != 0
                           : (memory.base & phase.outer_mask) == phase.outer_values && (j & phase.mask) == phase.values;
        if (holds) factor = factor * Amplitude<Number>{static_cast<Number>(phase.re), static_cast<Number>(phase.im)};
      }
      for (uint32_t s = 0; s < memory.states; ++s) memory.state(s)[j] = factor * memory.state(s)[j];
    }
  });
}

// A real 2x2 matrix on pairs of amplitudes, chosen by the parity of the first one's bits in z.
template <class Number, class Team>
void run_pair(Team& team, const TileMemory<Number>& memory, const TileStep& step, const Number* matrices) {
  if ((memory.base & step.outer_controls) != step.outer_values) return;
  const uint32_t top = 1U << (31U - static_cast<uint32_t>(__builtin_clz(step.x)));
  const uint32_t outer = odd_bits(memory.base & step.outer_z);
  team.each([&](uint32_t thread) {
    for (uint32_t q = thread; q < memory.states << (memory.bits - 1); q += team.threads()) {
      Amplitude<Number>* const tile = memory.state(q >> (memory.bits - 1));
      const uint32_t half = q & ((1U << (memory.bits - 1)) - 1);
      const uint32_t i = ((half & ~(top - 1)) << 1) | (half & (top - 1));
      if ((i & step.controls) != step.values) continue;
      const Number* const m = matrices + 4 * (odd_bits(i & step.z) ^ outer);
      const Amplitude<Number> a = tile[i];
      const Amplitude<Number> b = tile[i ^ step.x];
      tile[i] = {m[0] * a.re + m[1] * b.re, m[0] * a.im + m[1] * b.im};
      tile[i ^ step.x] = {m[2] * a.re + m[3] * b.re, m[2] * a.im + m[3] * b.im};
    }
  });
}

// A matrix on `count` bits: the places of its 2^count rows in the tile, then its values.
template <class Number, class Team>
void run_dense(Team& team, const TileMemory<Number>& memory, const TileStep& step, const unsigned char* data) {
  if ((memory.base & step.outer_controls) != step.outer_values) return;
  const uint32_t size = 1U << step.count;
  const auto* const places = reinterpret_cast<const uint32_t*>(data);
  const auto* const matrix = reinterpret_cast<const Amplitude<Number>*>(data + next_piece(uint64_t{4} * size));
  for (uint32_t s = 0; s < memory.states; ++s) {
    Amplitude<Number>* const tile = memory.state(s);
    team.each([&](uint32_t thread) {
      for (uint32_t q = thread; q < 1U << memory.bits; q += team.threads()) {
        const uint32_t row = q & (size - 1);
        const auto at = static_cast<uint32_t>(insert_zeros(q >> step.count, step.x));
        if ((at & step.controls) != step.values) continue;
        Amplitude<Number> sum{0, 0};
        for (uint32_t c = 0; c < size; ++c) sum = sum + matrix[row * size + c] * tile[at | places[c]];
        memory.other[at | places[row]] = sum;
      }
    });
    team.each([&](uint32_t thread) {
      for (uint32_t j = thread; j < 1U << memory.bits; j += team.threads()) {
        if ((j & step.controls) == step.values) tile[j] = memory.other[j];
      }
    });
  }
}

// A diagonal of 2^count values: the bits of its index, then the values.
template <class Number, class Team>
void run_table(Team& team, const TileMemory<Number>& memory, const TileStep& step, const unsigned char* data) {
  if ((memory.base & step.outer_controls) != step.outer_values) return;
  const auto* const bits = reinterpret_cast<const TableBit*>(data);
  const auto* const values = reinterpret_cast<const Amplitude<Number>*>(data + next_piece(uint64_t{8} * step.count));
  team.each([&](uint32_t thread) {
    for (uint32_t j = thread; j < 1U << memory.bits; j += team.threads()) {
      if ((j & step.controls) != step.values) continue;
      uint64_t index = 0;
      for (uint32_t b = 0; b < step.count; ++b) {
        index |= ((bits[b].outside != 0 ? memory.base : uint64_t{j}) >> bits[b].bit & 1U) << b;
      }
      for (uint32_t s = 0; s < memory.states; ++s) memory.state(s)[j] = values[index] * memory.state(s)[j];
    }
  });
}

// Adds Im <bra| Q P |ket> of the tile to the sum of a probe, where P has `count` times Y.
template <class Number, class Team>
void run_probe(Team& team, const TileMemory<Number>& memory, const TileStep& step, double* sum) {
  if ((memory.base & step.outer_controls) != step.outer_values) return;
  auto* const scratch = reinterpret_cast<double*>(memory.other);
  const uint32_t outer = odd_bits(memory.base & step.outer_z);
  team.each([&](uint32_t thread) {
    double re = 0;
    double im = 0;
    for (uint32_t j = thread; j < 1U << memory.bits; j += team.threads()) {
      if ((j & step.controls) != step.values) continue;
      const Amplitude<Number> l = memory.state(1)[j ^ step.x];
      const Amplitude<Number> r = memory.state(0)[j];
      const double sign = (odd_bits(j & step.z) ^ outer) != 0 ? -1 : 1;
      re += sign * (double{l.re} * r.re + double{l.im} * r.im);
      im += sign * (double{l.re} * r.im - double{l.im} * r.re);
    }
    const double part = (step.count & 1U) != 0 ? re : im;
    scratch[thread] = (step.count & 2U) != 0 ? -part : part;
  });
  add_over_threads(team, scratch, 1);
  team.each([&](uint32_t thread) {
    if (thread == 0) *sum += scratch[0];
  });
}

template <class Number, class Team>
void run_step(Team& team, const TileArguments& arguments, const TileMemory<Number>& memory, const TileStep& step) {
  const unsigned char* const data = arguments.program + step.data;
  switch (step.kind) {
    case TileStepKind::turns: {
      const auto* const turns = reinterpret_cast<const Number*>(data);
      if (step.count == 1) return turn_bits<1>(team, memory, step.x, turns);
      if (step.count == 2) return turn_bits<2>(team, memory, step.x, turns);
      return turn_bits<3>(team, memory, step.x, turns);
    }
    case TileStepKind::phases:
      return run_phases(team, memory, reinterpret_cast<const TilePhase*>(data), step.count);
    case TileStepKind::pair:
      return run_pair(team, memory, step, reinterpret_cast<const Number*>(data));
    case TileStepKind::dense:
      return run_dense(team, memory, step, data);
    case TileStepKind::table:
      return run_table(team, memory, step, data);
    case TileStepKind::probe:
      return run_probe(team, memory, step, arguments.sums + uint64_t{team.group()} * arguments.probes + step.data);
  }
}

// Shared memory: a tile of each state, and another one. Threads: a power of two, at most half the numbers of a tile, or
// 1 for a tile of less than 8 bytes.
template <class Number, class Team>
void tile_pass(Team& team, const TileArguments& arguments) {
  TileMemory<Number> memory{};
  const uint32_t size = 1U << arguments.bits;
  memory.states = arguments.bra != nullptr ? 2 : 1;
  memory.bits = arguments.bits;
  memory.first = team.template shared<Amplitude<Number>>();
  memory.other = memory.state(memory.states);
  const auto* const rows = data_at<uint64_t>(arguments, arguments.rows);
  const auto* const steps = data_at<TileStep>(arguments, arguments.steps);
  const uint32_t inside = (1U << arguments.low) - 1;
  const auto amplitude = [&](uint32_t s, uint64_t place) {
    return global(static_cast<Amplitude<Number>*>(s == 0 ? arguments.ket : arguments.bra)) + place;
  };
  team.each([&](uint32_t thread) {
    for (uint32_t p = thread; p < arguments.probes; p += team.threads()) {
      arguments.sums[uint64_t{team.group()} * arguments.probes + p] = 0;
    }
  });
  for (uint64_t tile = team.group(); tile < arguments.tiles; tile += team.groups()) {
    memory.base = insert_zeros(tile, arguments.tile);
    team.each([&](uint32_t thread) {
      for (uint32_t j = thread; j < size; j += team.threads()) {
        const uint64_t place = memory.base + rows[j >> arguments.low] + (j & inside);
        for (uint32_t s = 0; s < memory.states; ++s) {
          memory.state(s)[j] = {amplitude(s, place)->re, amplitude(s, place)->im};
        }
      }
    });
    for (uint32_t s = 0; s < arguments.step_count; ++s) run_step(team, arguments, memory, steps[s]);
    team.each([&](uint32_t thread) {
      for (uint32_t j = thread; j < size; j += team.threads()) {
        const uint64_t place = memory.base + rows[j >> arguments.low] + (j & inside);
        for (uint32_t s = 0; s < memory.states; ++s) {
          amplitude(s, place)->re = memory.state(s)[j].re;
          amplitude(s, place)->im = memory.state(s)[j].im;
        }
      }
    });
  }
}

}  // namespace onehop::device
