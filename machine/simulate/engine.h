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
  enum class EventKind : std::uint8_t {
    start_flows,  // a batch of messages enters the network
    deliver,      // the last byte of a flow has reached its receiver
    begin_round,  // a class of ranks has left the round before
  };
  struct Event {
    double time;  // seconds from the start
    EventKind kind;
    std::uint32_t index;  // start_flows: of a batch; deliver: of a flow; begin_round: of a class of ranks
    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.index > b.index;  // the earliest on top; ties in a fixed order
    }
  };
  // The flows of one sender that start together.
  struct Batch {
    std::size_t first = 0;
    std::size_t last = 0;  // into batch_flows_
  };
  // The progress of a class of ranks in its round; times in seconds.
  struct ClassState {
    int round = -1;
    double busy_until = 0;  // the processor posts, computes, copies or receives until then
    double sent_until = 0;  // the last flow has left the sender
    double least_end = 0;   // the begin of the round and everything that the processor does in it
    std::uint32_t to_send = 0;
    std::uint32_t to_receive = 0;  // flows
    bool in_round = false;
  };
  struct FlowState {
    Flow flow;
    int round = 0;
    double bytes_left = 0;
  };
  // A flow that was delivered before its receiver began the round.
  struct EarlyArrival {
    std::uint32_t flow;
    double time;
  };

  void load_round(int round);  // adds the flows and links of a round
  void begin_round(std::uint32_t rank, double time);
  void post_sends(std::uint32_t rank, double begin);
  void start_flows(std::uint32_t batch, double time);
  void finish_flow(std::uint32_t flow, double time);
  void deliver(std::uint32_t flow, double time);
  void receive(std::uint32_t flow, double time);
  void end_round_if_done(std::uint32_t rank);
  void advance_flows(double time);
  void next_step();
  void handle(const Event& event);
  [[nodiscard]] double time_tolerance() const;
  void report();
  void check_all_done() const;
  [[nodiscard]] double compute_seconds(int round) const;
  [[nodiscard]] double copy_seconds(double bytes) const;
  [[nodiscard]] double local_seconds(int round, std::uint32_t rank) const;
  // The processor is busy with each message of a flow: for the overhead, and to gather or scatter its pieces.
  [[nodiscard]] double busy_seconds(const Flow& flow, double pieces) const {
    return flow.overhead + network_.machine().packing_seconds(flow.bytes, pieces);
  }
  [[nodiscard]] double chunk() const { return static_cast<double>(options_.chunk_bytes); }
  [[nodiscard]] double rate_limit(const Flow& flow, double limit) const;
  void fill_links(Simulation& result) const;

  const Traffic& traffic_;
  const Network& network_;
  const Classes& classes_;
  const SimulateOptions& options_;
  LinkTable links_;
  MaxMin max_min_;
  FlowTable table_;
  std::vector<FlowState> flows_;
  std::vector<double> rates_;
  std::vector<std::uint32_t> active_flows_;
  std::vector<Batch> batches_;
  std::vector<std::uint32_t> batch_flows_;
  std::vector<RoundFlows> rounds_;       // loaded when the first class begins one
  std::vector<std::size_t> first_flow_;  // of each round in flows_
  std::vector<ClassState> states_;
  std::vector<std::vector<EarlyArrival>> early_arrivals_;  // of each class
  std::priority_queue<Event> events_;
  std::vector<double> link_bytes_;
  std::vector<double> level_bytes_;
  std::vector<double> round_end_;
  std::vector<std::vector<RankSpan>> timelines_;
  std::vector<std::pair<double, std::uint32_t>> finished_flows_;
  double now_ = 0;  // up to which flows have advanced; events that change none of them may be later
  double newest_round_start_ = 0;
  double next_completion_ = 0;
  double finished_rounds_ = 0;  // of all classes together, for the progress
  std::uint64_t steps_ = 0;
  bool rates_stale_ = false;  // the active flows have changed since max_min_ computed their rates
};

}  // namespace onehop::detail
