// The engine's public interface: every operation against its definition.
#include "onehop/quantum/engine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onehop/error.h"
#include "tests/support/local_operations.h"
#include "tests/support/thrown.h"

namespace onehop::quantum {
namespace {

using namespace testing;

void expect_same(int bits, const std::vector<LocalOperation>& operations, const Amplitudes& start,
                 const std::string& what) {
  double most = 1;
  const Amplitudes expected = by_definition(start, operations, most);
  const double each = 1 + static_cast<double>(operations.size());
  for (const int threads : {1, 2, 3}) {
    auto found = as<double>(start);
    const auto counters = apply<double>(found, operations, {.threads = threads});
    ASSERT_LT(distance(expected, found), 1e-14 * each * most) << what << ", double, " << threads << " threads";
    ASSERT_EQ(counters.passes, count_passes(bits, operations, 16));
    ASSERT_EQ(counters.passes, static_cast<double>(summarize_passes(bits, operations, 16).size()));
    auto single = as<float>(start);
    apply<float>(single, operations, {.threads = threads});
    ASSERT_LT(distance(expected, single), 1e-6 * each * most) << what << ", float, " << threads << " threads";
  }
}

TEST(QuantumEngine, OneOperationOfEveryKind) {
  Random random(1);
  for (int bits = 1; bits <= 12; ++bits) {
    for (int round = 0; round < 30; ++round) {
      const LocalOperation op = random_operation(random, bits);
      expect_same(bits, {op}, random_state(random, bits),
                  std::to_string(bits) + " bits, kind " + std::to_string(static_cast<int>(op.kind)));
    }
  }
}

TEST(QuantumEngine, Circuits) {
  Random random(2);
  for (int bits = 1; bits <= 12; ++bits) {
    for (int round = 0; round < 4; ++round) {
      std::vector<LocalOperation> operations;
      for (int i = 0; i < 40; ++i) operations.push_back(random_operation(random, bits, 3));
      expect_same(bits, operations, random_state(random, bits),
                  std::to_string(bits) + " bits, round " + std::to_string(round));
    }
  }
}

TEST(QuantumEngine, NothingToDo) {
  std::vector<Complex> one = {Complex(0.5, 0.25)};
  EXPECT_EQ(apply<double>(one, {}).passes, 0);
  const LocalOperation factor{.kind = LocalKind::diagonal, .values = {Complex(0, 1)}};
  apply<double>(one, {&factor, 1});
  EXPECT_EQ(one[0], Complex(-0.25, 0.5));
}

TEST(QuantumEngine, BadInputNamesTheOperation) {
  std::vector<Complex> state(8);
  const auto message = [&](const LocalOperation& op) {
    const std::vector<LocalOperation> operations = {{.kind = LocalKind::diagonal, .values = {1.0}}, op};
    return onehop::testing::message_of<BadInput>([&] { apply<double>(state, operations); });
  };
  EXPECT_NE(message({.kind = LocalKind::swap, .bits = {0, 3}}).find("operation 1: bit 3 does not exist"),
            std::string::npos);
  EXPECT_NE(message({.kind = LocalKind::swap, .bits = {1, 1}}).find("named twice"), std::string::npos);
  EXPECT_NE(message({.kind = LocalKind::swap, .bits = {1}}).find("2 bits"), std::string::npos);
  EXPECT_NE(message({.kind = LocalKind::matrix, .bits = {1}, .values = {1.0}}).find("expected 4 values, found 1"),
            std::string::npos);
  EXPECT_NE(
      message({.kind = LocalKind::diagonal, .bits = {1}, .control_mask = 2, .values = {1.0, 1.0}}).find("control"),
      std::string::npos);
  EXPECT_NE(
      message({.kind = LocalKind::diagonal, .control_mask = 1, .control_values = 2, .values = {1.0}}).find("control"),
      std::string::npos);
  EXPECT_NE(message({.kind = LocalKind::pauli_rotation, .x_mask = 8}).find("higher bits"), std::string::npos);
  std::vector<Complex> six(6);
  EXPECT_THROW(apply<double>(six, {}), BadInput);
  EXPECT_THROW((void)norm_squared<double>(state, {.threads = -1}), BadInput);
}

}  // namespace
}  // namespace onehop::quantum
