#include "onehop/machine/goal.h"

#include <algorithm>
#include <cmath>

#include "machine/simulate/goal_program.h"
#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop {
namespace detail {
namespace {

using Kind = GoalOperation::Kind;

std::int64_t compute_of(const GoalOptions& options, std::size_t round) {
  if (options.compute.empty()) return 0;
  return options.compute.size() == 1 ? options.compute.front() : options.compute[round];
}

void check(const Traffic& traffic, const GoalOptions& options) {
  if (options.compute.size() > 1 && options.compute.size() != traffic.rounds.size()) {
    throw BadInput("goal: expected one time to compute, or one for each of " +
                   base::counted(traffic.rounds.size(), "round") + ", found " + std::to_string(options.compute.size()));
  }
  if (std::ranges::any_of(options.compute, [](std::int64_t time) { return time < 0; }) ||
      !(options.copy_per_byte >= 0) || !std::isfinite(options.copy_per_byte)) {
    throw BadInput("goal: expected times of at least 0, found a negative one");
  }
}

// Adds the rounds of one rank after each other.
class RankProgram {
 public:
  void begin_round() { in_round_.clear(); }

  int add(GoalOperation operation) {
    if (join_ >= 0 && operation.requires_done.empty()) operation.requires_done.push_back(join_);
    operations_.push_back(std::move(operation));
    const int number = static_cast<int>(operations_.size()) - 1;
    in_round_.push_back(number);
    return number;
  }

  // Adds an operation that takes no time and waits for the whole round.
  void end_round() {
    if (in_round_.empty()) return;
    GoalOperation join;
    join.requires_done = in_round_;
    operations_.push_back(std::move(join));
    join_ = static_cast<int>(operations_.size()) - 1;
  }

  [[nodiscard]] std::vector<GoalOperation> finish() { return std::move(operations_); }

 private:
  std::vector<GoalOperation> operations_;
  std::vector<int> in_round_;
  int join_ = -1;
};

struct RankRound {
  std::vector<const Message*> out;
  std::vector<const Message*> in;
};

void add_round(RankProgram& program, const RankRound& round, int tag, std::int64_t busy) {
  program.begin_round();
  int last_send = -1;
  for (const Message* message : round.out) {
    GoalOperation send{Kind::send, std::max<std::int64_t>(1, message->bytes), message->to, tag, {}, {}};
    // A send begins after the one before it, which fixes their order.
    if (last_send >= 0) send.requires_started.push_back(last_send);
    last_send = program.add(std::move(send));
  }
  for (const Message* message : round.in) {
    program.add({Kind::receive, std::max<std::int64_t>(1, message->bytes), message->from, tag, {}, {}});
  }
  if (busy > 0) {
    GoalOperation compute{Kind::calculate, busy, 0, 0, {}, {}};
    if (last_send >= 0) compute.requires_done.push_back(last_send);
    program.add(std::move(compute));
  }
  program.end_round();
}

}  // namespace

GoalProgram goal_program(const Traffic& traffic, const GoalOptions& options) {
  check(traffic, options);
  traffic.check();
  const Traffic listed = traffic.listed();
  const auto ranks = static_cast<std::size_t>(listed.ranks);
  std::vector<RankProgram> programs(ranks);
  for (std::size_t k = 0; k < listed.rounds.size(); ++k) {
    const TrafficRound& round = listed.rounds[k];
    std::vector<RankRound> parts(ranks);
    for (const Message& message : round.messages) {
      parts[static_cast<std::size_t>(message.from)].out.push_back(&message);
      parts[static_cast<std::size_t>(message.to)].in.push_back(&message);
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      double copied = 0;
      if (!round.local_bytes.empty()) {
        copied = static_cast<double>(round.local_bytes[round.local_bytes.size() == 1 ? 0 : rank]);
      }
      const std::int64_t busy = compute_of(options, k) + std::llround(copied * options.copy_per_byte);
      add_round(programs[rank], parts[rank], static_cast<int>(k), busy);
    }
  }
  GoalProgram program;
  for (RankProgram& one : programs) program.push_back(one.finish());
  return program;
}

}  // namespace detail

namespace {

using detail::GoalOperation;

std::string line_of(const GoalOperation& operation, int number) {
  const std::string label = "l" + std::to_string(number) + ": ";
  const std::string size = std::to_string(operation.size);
  const std::string peer = std::to_string(operation.peer) + " tag " + std::to_string(operation.tag) + "\n";
  switch (operation.kind) {
    case GoalOperation::Kind::send:
      return label + "send " + size + "b to " + peer;
    case GoalOperation::Kind::receive:
      return label + "recv " + size + "b from " + peer;
    case GoalOperation::Kind::calculate:
      break;
  }
  return label + "calc " + size + "\n";
}

}  // namespace

std::string to_goal(const Traffic& traffic, const GoalOptions& options) {
  const detail::GoalProgram program = detail::goal_program(traffic, options);
  std::string text = "num_ranks " + std::to_string(program.size()) + "\n";
  for (std::size_t rank = 0; rank < program.size(); ++rank) {
    text += "\nrank " + std::to_string(rank) + " {\n";
    for (std::size_t i = 0; i < program[rank].size(); ++i) {
      const GoalOperation& operation = program[rank][i];
      text += line_of(operation, static_cast<int>(i));
      const std::string label = "l" + std::to_string(i);
      for (const int other : operation.requires_done) text += label + " requires l" + std::to_string(other) + "\n";
      for (const int other : operation.requires_started) {
        text += label + " irequires l" + std::to_string(other) + "\n";
      }
    }
    // The format needs an operation on every rank.
    if (program[rank].empty()) text += "l0: calc 0\n";
    text += "}\n";
  }
  return text;
}

}  // namespace onehop
