// States in a file against the same operations in memory.
#include "quantum/state/stored_amplitudes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "onehop/error.h"
#include "onehop/quantum/observable.h"
#include "onehop/quantum/simulator.h"
#include "quantum/engine/big_tiles.h"
#include "quantum/engine/engine_diagonal.h"
#include "quantum/state/sampling.h"
#include "quantum/state/state_impl.h"
#include "tests/support/local_operations.h"
#include "tests/support/thrown.h"

namespace onehop::quantum {
namespace {

using namespace testing;
using onehop::testing::expect_says;

std::string folder() { return std::filesystem::temp_directory_path().string(); }

StateOptions on_disk(int memory_bits) {
  return {.threads = 2, .folder = folder(), .memory = std::int64_t{3} << memory_bits};
}

// As one tile it needs no room for others.
TEST(StoredState, FitsWhereMemoryHoldsAllOfIt) {
  for (const Precision precision : {Precision::double_precision, Precision::single_precision, Precision::q8}) {
    for (int bits = 1; bits <= 24; ++bits) {
      const DiskTiles tiles = disk_tiles(precision, bits, bytes_of_amplitudes(precision, bits));
      EXPECT_EQ(tiles.tile_bits, bits);
      EXPECT_GE(tiles.needed, tiles.smallest) << bits;
    }
  }
}

TEST(BigTiles, PassesDoWhatTheOperationsDo) {
  Random random(4);
  for (int round = 0; round < 40; ++round) {
    const int bits = number(random, 7, 10);
    const int tile_bits = number(random, 5, bits);
    const int low_bits = std::max(1, tile_bits - 4);
    std::vector<LocalOperation> operations;
    for (int i = 0; i < 20; ++i) {
      LocalOperation op = random_operation(random, bits, 3);
      const bool long_string = op.kind == LocalKind::pauli_rotation && op.control_mask != 0;
      if (!long_string) operations.push_back(op);
    }
    const Amplitudes start = random_state(random, bits);
    double most = 1;
    const Amplitudes expected = by_definition(start, operations, most);
    Amplitudes found = start;
    for (const BigPass& pass : make_big_passes(operations, bits, tile_bits, low_bits)) {
      ASSERT_EQ(std::popcount(pass.tile), tile_bits);
      const std::uint64_t free = ~pass.tile & ((std::uint64_t{1} << bits) - 1);
      for (std::uint64_t t = 0; t >> (bits - tile_bits) == 0; ++t) {
        const std::uint64_t outside = deposit_bits(t, free);
        Amplitudes tile(std::size_t{1} << tile_bits);
        for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = found[outside | deposit_bits(i, pass.tile)];
        double unused = 1;
        tile = by_definition(tile, within(pass, outside), unused);
        for (std::size_t i = 0; i < tile.size(); ++i) found[outside | deposit_bits(i, pass.tile)] = tile[i];
      }
    }
    ASSERT_LT(distance(expected, found), 1e-11 * most) << "round " << round;
  }
}

Circuit random_circuit(int n, int layers) {
  Circuit c;
  c.qubits = n;
  Random random(9);
  for (int i = 0; i < layers * n; ++i) {
    const auto qubits = shuffled(random, n);
    c.operations.push_back(gate("u3", {qubits[0]}, {real(random), real(random), real(random)}));
    c.operations.push_back(
        gate(i % 3 == 0 ? "cp" : "cx", {qubits[1], qubits[2]}, i % 3 == 0 ? std::vector{0.3} : std::vector<double>{}));
  }
  for (int i = 1; i < n; ++i) c.operations.push_back(gate("cx", {i - 1, i}));  // one part
  return c;
}

TEST(StoredState, RunsAsInMemory) {
  const int n = 17;
  const Circuit c = random_circuit(n, 4);
  SimulationOptions options;
  options.shots = 300;
  options.seed = 5;
  options.observables = {PauliSum::parse("Z0 + 0.5*X16 Y3"), PauliSum::parse("Y16 X15 Z2")};
  const auto expected = simulate(c, Group::alone(), options);
  for (const auto& [precision, bits, tolerance] : {std::tuple(Precision::double_precision, 14 + 4, 1e-12),
                                                   std::tuple(Precision::single_precision, 14 + 3, 1e-5)}) {
    options.precision = precision;
    options.state = on_disk(bits);
    const auto found = simulate(c, Group::alone(), options);
    EXPECT_TRUE(found.factors.at(0).state->is_stored());
    EXPECT_LT(distance(expected.factors.at(0).state->gather(), found.factors.at(0).state->gather()), tolerance);
    EXPECT_EQ(found.outcomes.of_shot, expected.outcomes.of_shot);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(std::abs(found.expectations[i] - expected.expectations[i]), 0, 10 * tolerance);
    }
    EXPECT_GT(found.disk.bytes_written, std::int64_t{8} << n);
    EXPECT_GT(found.disk.seconds, 0);
    const std::vector<int> qubits{16, 0, 7};
    const auto rho = found.factors.at(0).state->reduced_density_matrix(qubits);
    const auto exact = expected.factors.at(0).state->reduced_density_matrix(qubits);
    for (std::size_t i = 0; i < rho.size(); ++i) EXPECT_NEAR(std::abs(rho[i] - exact[i]), 0, tolerance);
    found.factors.at(0).state->collapse(16, 1, found.factors.at(0).state->probability_of_one(16));
    EXPECT_NEAR(found.factors.at(0).state->norm_squared(), 1, 10 * tolerance);
    EXPECT_NEAR(found.factors.at(0).state->probability_of_one(16), 1, 10 * tolerance);
  }
}

TEST(StoredState, EncodedToo) {
  const int n = 22;
  const Circuit c = random_circuit(n, 1);
  SimulationOptions options;
  options.precision = Precision::single_precision;
  options.state.threads = 2;
  const auto expected = simulate(c, Group::alone(), options).factors.at(0).state->gather();
  options.precision = Precision::q8;
  options.state.folder = folder();
  options.state.memory = 6'800'000;  // three tiles of 20 bits
  const auto found = simulate(c, Group::alone(), options);
  Complex product = 0;
  const auto amplitudes = found.factors.at(0).state->gather();
  for (std::size_t i = 0; i < amplitudes.size(); ++i) product += std::conj(expected[i]) * amplitudes[i];
  EXPECT_GT(std::norm(product), 0.999);
  EXPECT_NEAR((1 - std::norm(product)) / (1 - found.fidelity_estimate), 1, 0.3);
  EXPECT_NEAR(found.factors.at(0).state->norm_squared(), 1, 1e-5);
}

TEST(StoredState, SamplesNothingFromAFileThatWasAltered) {
  const int qubits_of_state = 16;
  State state(Group::alone(), qubits_of_state, Precision::double_precision, on_disk(18));  // |0...0>
  const std::vector<int> qubits{0, 1, 2};
  const std::vector<std::uint64_t> shots{0, 1, 2};
  EXPECT_EQ(sample(state, qubits, shots, 1, {}).size(), shots.size());
  int altered = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string link = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!link.starts_with(folder()) || !std::filesystem::is_regular_file(entry.path(), gone)) continue;
    if (std::filesystem::file_size(entry.path(), gone) < std::uintmax_t{16} << qubits_of_state) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::vector<char> zeros(std::size_t{16} << (qubits_of_state - 2));
    file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
    ++altered;
  }
  ASSERT_EQ(altered, 1);
  expect_says<Error>([&] { static_cast<void>(sample(state, qubits, shots, 1, {})); }, "were altered");
}

TEST(StoredState, DisksThatFailAreErrors) {
  const Group alone = Group::alone();
  const auto state = [&](int qubits, const StateOptions& options) {
    return State(alone, qubits, Precision::single_precision, options).qubits();
  };
  expect_says<BadInput>([&] { return state(10, {.folder = "/nowhere/at/all"}); }, "'/nowhere/at/all'", "No such file");
  expect_says<Error>([&] { return state(52, {.folder = folder()}); }, "left", folder());
  expect_says<Error>([&] { return state(20, {.folder = folder(), .memory = 1000}); }, "at least");
  State stored(alone, 17, Precision::single_precision, on_disk(14 + 3));
  const LocalOperation x{.kind = LocalKind::matrix, .bits = {16}, .values = {0, 1, 1, 0}};
  for (const int after : {0, 3, 20}) {  // while reading and while writing
    AmplitudeFile::transfers_until_error = after;
    expect_says<Error>([&] { return stored.apply({&x, 1}).passes; }, "Input/output error", folder());
    AmplitudeFile::transfers_until_error = -1;
  }
  EXPECT_EQ(stored.apply({&x, 1}).passes, 1);
  EXPECT_THROW((void)stored.local<float>(), BadInput);
  EXPECT_THROW((void)variances(stored, {}), BadInput);
}

// A run with a checkpoint before every pass, and what its last one has besides the file.
struct Interrupted {
  SimulationOptions options;
  CheckpointState last;
  int checkpoints = 0;

  explicit Interrupted(const std::string& name, Precision precision) {
    options.precision = precision;
    options.shots = 200;
    options.seed = 3;
    options.state = on_disk(14 + 4);
    options.state.file = name;
    options.due = [] { return true; };
    options.keep = [this](const State& state, const CheckpointState& checkpoint) {
      state.file()->complete();
      last = checkpoint;
      options.state.kept = state.file()->number();
      ++checkpoints;
      state.file()->turn();
    };
    options.restore = [](const State& state) { state.file()->adopt(); };
  }
  [[nodiscard]] SimulationResult run(const Circuit& circuit) {
    options.resume = checkpoints > 0 ? &last : nullptr;
    return simulate(circuit, Group::alone(), options);
  }
};

TEST(StoredState, AnErrorOfTheDiskLeavesTheLastCheckpoint) {
  const std::string name = folder() + "/onehop-checkpoint-" + std::to_string(getpid());
  Circuit c = random_circuit(16, 1);
  c.clbits = 2;
  Operation& measured = c.operations.emplace_back();
  measured.kind = OperationKind::measure;
  measured.targets = {3, 15};
  measured.clbits = {0, 1};
  Operation conditional = gate("x", {3});
  conditional.condition = {.clbits = {0}, .value = 1};
  c.operations.push_back(conditional);
  const Circuit more = random_circuit(16, 1);
  c.operations.insert(c.operations.end(), more.operations.begin(), more.operations.end());
  SimulationOptions plain;
  plain.shots = 200;
  plain.seed = 3;
  const auto expected = simulate(c, Group::alone(), plain);
  int failed = 0;
  for (int after = 40;; after += after) {
    Interrupted interrupted(name, Precision::double_precision);
    AmplitudeFile::transfers_until_error = after;
    try {
      static_cast<void>(interrupted.run(c));
      AmplitudeFile::transfers_until_error = -1;
      break;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("the last checkpoint stays"), std::string::npos) << error.what();
    }
    AmplitudeFile::transfers_until_error = -1;
    if (interrupted.checkpoints > 1) ++failed;
    const auto found = interrupted.run(c);
    EXPECT_EQ(found.outcomes.of_shot, expected.outcomes.of_shot);
    EXPECT_EQ(found.runs, expected.runs);
    EXPECT_LT(distance(found.factors.at(0).state->gather(), expected.factors.at(0).state->gather()), 1e-12);
  }
  EXPECT_GT(failed, 2);
  for (const char* end : {".0", ".1"}) std::filesystem::remove(name + end);
}

// Another user might own the folder around it, and put a link in its place.
TEST(StoredState, ItsFilesStayInTheFolderThatWasOpened) {
  namespace fs = std::filesystem;
  const fs::path around = folder() + "/onehop-moved-" + std::to_string(getpid());
  fs::create_directories(around / "run");
  fs::create_directories(around / "other");
  std::ofstream(around / "other" / "state.1") << "kept";
  {
    AmplitudeFile file({.folder = around / "run", .file = around / "run" / "state"}, AmplitudeFile::unit);
    fs::rename(around / "run", around / "moved");
    fs::create_directory_symlink(around / "other", around / "run");
    file.complete();
    file.turn();
    EXPECT_TRUE(fs::exists(around / "moved" / "state.0"));
    EXPECT_TRUE(fs::exists(around / "moved" / "state.1"));
  }
  EXPECT_EQ(fs::file_size(around / "other" / "state.1"), 4U);
  fs::remove_all(around);
}

}  // namespace
}  // namespace onehop::quantum
