#include "src/plan/program/plan_trace.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "src/base/trace.h"

namespace onehop::detail {
namespace {

class PlanTrace final : public PlanWatch {
 public:
  PlanTrace(const Program& program, const std::string& name, const GroupState& group)
      : run_(trace::name_of(name)),
        start_(trace::name_of(name + " start")),
        finish_(trace::name_of(name + " finish")),
        rounds_(static_cast<std::uint32_t>(program.rounds.size())) {
    std::map<int, std::int64_t> sent;
    for (const ProgramRound& round : program.rounds) {
      for (const ProgramMessage& message : round.out) {
        std::int64_t& bytes = sent[group.world_rank(program.senders[message.end].peer())];
        for (std::uint32_t f = message.first; f != message.last; ++f) bytes += program.fragments[f].bytes;
      }
      direct_ += round.moved.bytes_sent;
    }
    sent_.assign(sent.begin(), sent.end());
    for (const auto& [peer, bytes] : sent_) bytes_ += bytes;
    bytes_ += direct_;
  }

  void begins() override {
    begun_ = trace::now();
    closed_ = false;
  }
  void close() override {
    if (!closed_) record(start_, begun_, 0);
    closed_ = true;
  }
  void open() override {
    if (closed_ && opened_ == 0) opened_ = trace::now();
  }
  void report() override {
    record(closed_ ? finish_ : run_, closed_ ? opened_ : begun_, bytes_);
    opened_ = 0;
    for (const auto& [peer, bytes] : sent_) trace::sent(peer, bytes);
  }

 private:
  void record(std::uint32_t name, std::int64_t begin, std::int64_t bytes) const {
    trace::record({.begin = begin,
                   .end = trace::now(),
                   .name = name,
                   .kind = trace::Kind::plan,
                   .count = rounds_,
                   .bytes = bytes});
  }

  std::uint32_t run_;
  std::uint32_t start_;
  std::uint32_t finish_;
  std::uint32_t rounds_;
  std::int64_t bytes_ = 0;
  std::int64_t direct_ = 0;  // of exchanges in place
  std::vector<std::pair<int, std::int64_t>> sent_;
  std::int64_t begun_ = 0;
  std::int64_t opened_ = 0;  // 0: not since the last run
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<PlanWatch> make_plan_trace(const Program& program, const std::string& name, const GroupState& group) {
  if (!trace::is_on()) return nullptr;
  return std::make_unique<PlanTrace>(program, name, group);
}

}  // namespace onehop::detail
