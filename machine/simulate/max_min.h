// Max-min fair rates: no flow can get more without taking from one that has no more than it.
#pragma once

#include <cstdint>
#include <vector>

namespace onehop::detail {

// One link on a flow's route. `weight` is the number of copies of the flow that one such link carries.
struct Use {
  std::uint32_t link = 0;
  double weight = 1;
};

// Flows with their routes, which stay in place while flows come and go.
struct FlowTable {
  std::vector<Use> uses;
  std::vector<std::size_t> first;  // uses of flow f: [first[f], last[f])
  std::vector<std::size_t> last;
  std::vector<double> limit;  // greatest rate of a flow by itself, above 0
};

class MaxMin {
 public:
  // Grows with the links; `bandwidth` is above 0.
  void set_bandwidth(std::uint32_t link, double bandwidth);

  // Computes rate[f] for the flows in `active` by progressive filling: rates grow together until a link is full, whose
  // flows then keep their rate.
  void solve(const FlowTable& flows, const std::vector<std::uint32_t>& active, std::vector<double>& rate);

 private:
  void collect(const FlowTable& flows, const std::vector<std::uint32_t>& active);
  void fix(const FlowTable& flows, std::uint32_t flow, double value, std::vector<double>& rate);

  struct Candidate {
    double share;
    std::uint32_t link;
    friend bool operator<(const Candidate& a, const Candidate& b) { return a.share > b.share; }  // least on top
  };

  std::vector<double> bandwidth_;
  std::vector<double> left_;              // of each link in use
  std::vector<double> load_;              // the weights of its flows that still grow
  std::vector<std::uint32_t> links_;      // the links in use
  std::vector<std::size_t> flows_first_;  // of each link, into flows_of_
  std::vector<std::size_t> flows_last_;
  std::vector<std::uint32_t> flows_of_;
  std::vector<Candidate> heap_;
  std::vector<std::uint32_t> by_limit_;
};

}  // namespace onehop::detail
