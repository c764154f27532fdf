#include "src/device/kernel_trials.h"

#include <array>
#include <cstdint>

#include "src/device/all_kernels.h"

namespace onehop::device {
namespace {

using Words = std::vector<std::uint32_t>;
using Places = std::vector<std::uint64_t>;

// Numbers from -1 to 1 that are the same everywhere.
template <class Number>
std::vector<Number> some(std::size_t count) {
  std::vector<Number> found;
  for (std::uint32_t bits = 1; found.size() < count; bits = bits * 1664525 + 1013904223)  // of Numerical Recipes
    found.push_back(static_cast<Number>(static_cast<std::int32_t>(bits)) * static_cast<Number>(0x1p-31));
  return found;
}

template <class Number>
Amplitude<Number>* put_amplitudes(Trial& trial, std::size_t count) {
  return reinterpret_cast<Amplitude<Number>*>(trial.put(some<Number>(2 * count)));
}

// The data of a step.
template <class Number>
const void* put_data(Trial& trial, TileStepKind kind) {
  if (kind == TileStepKind::phases)
    return trial.put(std::vector<TilePhase>{{.re = 0.6, .im = 0.8, .outer_mask = 16, .mask = 5, .odd = 1},
                                            {.re = -0.3, .im = 0.4, .mask = 6, .values = 2}});
  if (kind != TileStepKind::dense && kind != TileStepKind::table) return trial.put(some<Number>(8));
  // The places of rows, or the bits of an index: bit 1 inside the tile and bit 4 outside.
  const void* const begin = trial.put(kind == TileStepKind::dense ? Words{0, 2, 4, 6} : Words{1, 0, 4, 1});
  put_amplitudes<Number>(trial, 16);
  return begin;
}

// The kernels on states, here of 6 bits.
template <class Number>
void try_states(Trial& trial) {
  constexpr std::size_t size = 64;
  constexpr Shape shape{.groups = 2, .threads = 16, .shared_bytes = 1U << 12U};
  const std::string type = sizeof(Number) == 4 ? "_f32" : "_f64";
  auto* const ket = put_amplitudes<Number>(trial, size);
  auto* const bra = put_amplitudes<Number>(trial, size);
  double* const sums = trial.put(std::vector<double>(size));
  trial.end_of_results();
  // A step of each kind on both states, in tiles of all bits but bit 4.
  const auto* const rows = reinterpret_cast<const unsigned char*>(trial.put(Places{0, 32}));
  const auto offset = [&](const void* at) {
    return static_cast<std::uint64_t>(static_cast<const unsigned char*>(at) - rows);
  };
  constexpr std::array names{", turns", ", phases", ", pair", ", dense", ", table", ", probe"};
  for (std::uint32_t k = 0; k < names.size(); ++k) {
    const auto kind = static_cast<TileStepKind>(k);
    TileStep step{.kind = kind, .count = 2, .x = 6, .z = 17, .controls = 8, .values = 8, .outer_z = 16};
    if (kind != TileStepKind::probe) step.data = offset(put_data<Number>(trial, kind));
    const std::uint64_t steps = offset(trial.put(std::vector{step}));
    const std::uint32_t probes = kind == TileStepKind::probe ? 1 : 0;
    trial.launch("tile_pass" + type, shape, TileArguments{ket, bra, rows, sums, 0b101111, 2, 0, steps, 1, 5, 4, probes},
                 names[k]);
  }
  trial.launch("apply_matrix" + type, shape,
               MatrixArguments{ket, put_amplitudes<Number>(trial, 16), trial.put(Places{0, 1, 8, 9}), 13, 4, 8, 2, 0});
  trial.launch("rotate_string" + type, shape, RotateArguments{ket, 6, 3, 12, 8, 16, 0.6, 0.48, -0.64});
  const std::vector<AddedString> strings{{5, 3, 0.5, 0.25}, {0, 9, -0.3, 0.7}};
  trial.launch("add_strings" + type, shape, AddArguments{ket, bra, trial.put(strings), strings.size(), size});
  WeightArguments weights{.state = ket, .out = sums, .outputs = 2, .parts = 2, .mask = 8, .part_size = 16, .bits = 1};
  weights.bit[0] = 3;
  trial.launch("sum_weights" + type, shape, weights, ", by bits");
  weights.places = trial.put(Places{0, 8});
  weights.bits = 0;
  weights.by_threads = 1;
  trial.launch("sum_weights" + type, shape, weights, ", by places");
  trial.launch("sum_products" + type, shape,
               ProductArguments{ket, bra, sums, 2, 32, 5, 16, 0, {0, 1, 2, 3, 4, 5, 6, 7}, most_strings, 0});
  trial.launch(
      "set_product" + type, shape,
      ProductStateArguments{ket, put_amplitudes<double>(trial, 8), put_amplitudes<double>(trial, 6), size, 3, 6});
  trial.launch("swap_arrays", shape,
               SwapArguments{reinterpret_cast<std::uint64_t*>(ket), reinterpret_cast<std::uint64_t*>(bra), size});
}

// Sums of one rank, which waits for its own flags.
void try_sums(Trial& trial) {
  constexpr std::uint64_t count = 2 * most_tiles * tile_numbers + 5;
  constexpr WindowLayout layout{1, 2};
  unsigned char* const window = trial.put(std::vector<unsigned char>(layout.bytes()));
  float* const target = trial.put(std::vector<float>(count));
  trial.end_of_results();
  const float* const source = trial.put(some<float>(count));
  for (const char* const codec : {"raw", "fp16", "bf16", "fp8", "q8", "q6", "q4", "q3"})
    trial.launch(std::string("all_reduce_") + codec, {2, 64, all_reduce_shared_bytes},
                 AllReduceArguments{{window}, source, target, count, nullptr, NumberType::float32, 0, 1, 2, 1, 2});
}

// A message from a box to a list, which waits for the flag between them.
void try_messages(Trial& trial) {
  auto* const from = reinterpret_cast<unsigned char*>(trial.put(some<float>(64)));
  auto* const to = reinterpret_cast<unsigned char*>(trial.put(std::vector<float>(64)));
  std::uint32_t* const words = trial.put(Words(4));  // the flags of both ends, the runs, and stop
  unsigned char* const wire = trial.put(std::vector<unsigned char>(256));
  trial.end_of_results();
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < 20; ++i) list.push_back(i * 12);
  const auto* const messages = trial.put(
      std::vector<SliceMessage>{{wire, 128, 128, 0, 1, words, words + 1}, {wire, 128, 128, 1, 1, words + 1, words}});
  const auto* const pieces = trial.put(std::vector<SlicePiece>{{from, 0, 20, no_list, {5, 4}, {4, 40}, 2, 4},  //
                                                               {to, 0, 20, 0, {1}, {4}, 1, 4}});
  const std::int64_t* const there = trial.put(list);
  for (const std::uint32_t packs : {1U, 0U})
    trial.launch("move_slices", {1, 16, slice_shared_bytes(16)},
                 SliceArguments{messages + 1 - packs, pieces, there, words + 2, words + 3, 1, packs, 1 - packs, 0},
                 packs != 0 ? ", packing" : ", unpacking");
}

}  // namespace

std::vector<std::function<void(Trial&)>> kernel_trials() {
  return {try_states<float>, try_states<double>, try_sums, try_messages};
}

}  // namespace onehop::device
