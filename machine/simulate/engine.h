// The event loop of `simulate`: ranks start messages, messages flow at max-min fair rates, and ranks take what arrives.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "machine/simulate/max_min.h"
#include "machine/simulate/round_flows.h"
#include "onehop/machine/simulate.h"

namespace onehop::detail {

class Engine {
 public:
  Engine(const Traffic& traffic, const Network& network, const Classes& classes, const SimulateOptions& options);

  // Runs all rounds and fills everything of the result but names and the time that it took.
  void run(Simulation& result);

 private:
  enum class What : std::uint8_t { start, arrive, enter };
  struct Event {
    double time;
    What what;
    std::uint32_t who;  // start: a batch; arrive: a flow; enter: a class of ranks
    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.who > b.who;  // the earliest on top; ties in a fixed order
    }
  };
  // The flows of one sender that start together.
  struct Batch {
    std::size_t first = 0;
    std::size_t last = 0;  // into batch_flows_
  };
  // What a class of ranks does at present.
  struct State {
    int round = -1;
    double busy_until = 0;
    double sent_until = 0;
    std::uint32_t to_send = 0;
    std::uint32_t to_receive = 0;
    bool entered = false;
  };
  struct Flying {
    Flow flow;
    int round = 0;
    double left = 0;
  };
  struct Early {
    std::uint32_t flow;
    double time;
  };

  void load_round(int round);
  void enter(std::uint32_t rank, double time);
  void post(std::uint32_t rank, double begin);
  void start(std::uint32_t batch, double time);
  void finish(std::uint32_t flow, double time);
  void arrive(std::uint32_t flow, double time);
  void take(std::uint32_t flow, double time);
  void leave_if_done(std::uint32_t rank);
  void flow_until(double time);
  void next_window();
  void happen(const Event& event);
  [[nodiscard]] double slack() const;
  void report();
  [[nodiscard]] double compute_seconds(int round) const;
  [[nodiscard]] double packing(double bytes) const;
  [[nodiscard]] double chunk() const { return static_cast<double>(options_.chunk_bytes); }
  [[nodiscard]] double limited(const Flow& flow, double limit) const;
  void fill_links(Simulation& result) const;

  const Traffic& traffic_;
  const Network& network_;
  const Classes& classes_;
  const SimulateOptions& options_;
  LinkTable links_;
  MaxMin rates_of_;
  FlowTable table_;
  std::vector<Flying> flows_;
  std::vector<double> rate_;
  std::vector<std::uint32_t> active_;
  std::vector<Batch> batches_;
  std::vector<std::uint32_t> batch_flows_;
  std::vector<RoundFlows> rounds_;       // loaded when the first rank enters
  std::vector<std::size_t> first_flow_;  // of each round in flows_
  std::vector<State> states_;
  std::vector<std::vector<Early>> early_;  // arrivals for rounds that a class has not entered yet
  std::priority_queue<Event> events_;
  std::vector<double> carried_;  // bytes per link
  std::vector<double> level_bytes_;
  std::vector<double> round_end_;
  std::vector<std::vector<RankSpan>> spans_;
  std::vector<std::pair<double, std::uint32_t>> ended_;
  double now_ = 0;  // of the flows; events that change none of them may be later
  double newest_round_began_ = 0;
  double soonest_end_ = 0;
  double done_ = 0;  // rounds that classes have left
  std::uint64_t windows_ = 0;
  bool changed_ = false;
};

}  // namespace onehop::detail
