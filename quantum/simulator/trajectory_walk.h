// Walks the tree of histories of a noisy circuit: one worker, with states of its own.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "quantum/simulator/noisy_program.h"
#include "quantum/simulator/shots.h"

namespace onehop::quantum {

class TrajectoryWalk {
 public:
  // The part of the histories that this worker computes, of `workers`. All workers walk the first history, because the
  // others branch off it; the branches are divided in turn.
  struct Share {
    int worker = 0;
    int workers = 1;
  };

  // `max_states`: states that may exist at once; with fewer than 3, branches run from the beginning. The program and
  // the options must outlive the walk.
  TrajectoryWalk(const NoisyProgram& program, const SplitProgram& split, const Group& group,
                 const ProgramOptions& options, const StateOptions& of_states, std::size_t max_states, Share share);

  // Computes the share of `trajectories`, whose events are given. Collective in the group of the states.
  void run(const std::vector<std::vector<NoiseEvent>>& events);

  // Results.
  std::vector<Run> histories;
  std::vector<std::uint64_t> shots;     // the shots of these histories
  std::vector<std::uint64_t> outcomes;  // their classical bits, in words of 64
  [[nodiscard]] StateCounters counters() const;
  [[nodiscard]] std::unique_ptr<State> take_state();

 private:
  struct Live {
    std::uint64_t trajectory = 0;
    std::uint32_t next = 0;   // the first of its events that is still to come
    std::uint32_t jumps = 0;  // events so far that depended on the state
    double threshold = 0;     // the survival at which the next of them happens
  };
  // A history up to its last event. The survival is the probability that none of the channels which depend on the state
  // has applied another operator than its default since then.
  struct Node {
    std::size_t depth = 0;
    std::vector<NoiseEvent> record;
    std::vector<Live> live;
    std::size_t position = 0;  // the next step
    double norm = 1;           // the state's squared norm
    double survival = 1;
    bool fresh = true;  // whether `position` is the node's first
  };
  struct Deferred {
    std::vector<NoiseEvent> record;
    std::vector<Live> live;
  };

  State& state(std::size_t depth);
  [[nodiscard]] double jump_threshold(const Live& live) const;
  void replay(State& state, const std::vector<NoiseEvent>& record) const;
  void walk(Node node);
  void jump(Node& node);
  void mix(Node& node);
  void child(const Node& parent, NoiseEvent event, std::vector<Live> live, double norm);
  bool to_jump(Node& node, std::size_t stop);
  void locate(Node& node, std::size_t stop, double threshold, double survival);
  void finish(const Node& node);
  void sample(const Node& node);
  [[nodiscard]] std::size_t next_event(const Node& node) const;

  const NoisyProgram& program_;
  const SplitProgram& split_;
  Group group_;
  const ProgramOptions& options_;
  StateOptions of_states_;
  std::size_t max_states_;
  Share share_;
  const std::vector<std::vector<NoiseEvent>>* events_ = nullptr;
  std::vector<std::unique_ptr<State>> states_;  // by depth
  std::unique_ptr<State> before_;               // the state at the beginning of a stretch of steps
  std::vector<Deferred> deferred_;              // branches for which there was no memory
  std::int64_t children_ = 0;
  bool dividing_ = true;  // whether this is the first history, whose branches are divided
  std::size_t words_;
};

// Runs the trajectories of a program that has histories. Collective.
[[nodiscard]] SimulationResult run_histories(const SplitProgram& split, const Group& group,
                                             const ProgramOptions& options);

}  // namespace onehop::quantum
