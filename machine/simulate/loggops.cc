// The model LogGOPS (Hoefler, Schneider, Lumsdaine, LogGOPSim, 2010) as an event loop. A send keeps the processor busy
// for o + (s-1) O and the network interface for g + (s-1) G. Its message arrives o + L later, and is taken when the
// receiver's processor and interface are free, for o + (s-1) max(O, G) and g + (s-1) G.
#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <string>

#include "machine/simulate/goal_program.h"
#include "onehop/error.h"

namespace onehop {
namespace {

using detail::GoalOperation;
using detail::GoalProgram;
using Kind = GoalOperation::Kind;

template <class Items>
auto& at(Items& items, int index) {
  return items[static_cast<std::size_t>(index)];
}

class LogGopsRun {
 public:
  LogGopsRun(const GoalProgram& program, const LogGops& costs) : program_(program), costs_(costs) {
    for (const auto& operations : program) {
      Rank rank;
      rank.missing.resize(operations.size());
      rank.after_done.resize(operations.size());
      rank.after_started.resize(operations.size());
      for (std::size_t i = 0; i < operations.size(); ++i) {
        rank.missing[i] = operations[i].requires_done.size() + operations[i].requires_started.size();
        for (const int other : operations[i].requires_done) at(rank.after_done, other).push_back(static_cast<int>(i));
        for (const int other : operations[i].requires_started) {
          at(rank.after_started, other).push_back(static_cast<int>(i));
        }
        if (rank.missing[i] == 0) rank.ready.push_back(static_cast<int>(i));
      }
      ranks_.push_back(std::move(rank));
    }
  }

  [[nodiscard]] std::vector<std::int64_t> run() {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) queue_ready(rank, true);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.message) {
        take(event);
      } else {
        begin(event);
      }
      // Only the event's own rank can have new operations: messages are eager.
      queue_ready(event.rank, false);
    }
    std::vector<std::int64_t> ends;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ends.push_back(ranks_[r].processor);
      if (ranks_[r].done < ranks_[r].missing.size()) throw_deadlock(r);
    }
    return ends;
  }

 private:
  struct Event {
    std::int64_t time = 0;
    std::int64_t number = 0;  // events of one time happen in the order in which they came up
    int rank = 0;
    int operation = 0;  // of the rank, or of a message's sender
    int sender = 0;
    bool message = false;
    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
  };
  struct Rank {
    std::int64_t processor = 0;  // free from then on
    std::int64_t sending = 0;
    std::int64_t receiving = 0;
    std::vector<std::size_t> missing;  // conditions of each operation
    std::vector<std::vector<int>> after_done;
    std::vector<std::vector<int>> after_started;
    std::vector<int> ready;
    std::map<std::pair<int, int>, std::deque<int>> posted;  // receives by peer and tag
    std::map<std::pair<int, int>, int> unexpected;          // messages that came before their receive
    std::size_t done = 0;
  };

  [[noreturn]] void throw_deadlock(std::size_t number) const {
    std::string text = "loggops: deadlock: rank " + std::to_string(number) + " waits";
    const auto& posted = ranks_[number].posted;
    const auto first = std::ranges::find_if(posted, [](const auto& receives) { return !receives.second.empty(); });
    if (first != posted.end()) text += " for rank " + std::to_string(first->first.first);
    throw Error(text);
  }

  void push(Event event) {
    event.number = next_number_++;
    events_.push(event);
  }

  void release(Rank& rank, const std::vector<int>& followers) {
    for (const int one : followers) {
      if (--at(rank.missing, one) == 0) rank.ready.push_back(one);
    }
  }

  void started(Rank& rank, int operation) { release(rank, at(rank.after_started, operation)); }

  void finished(Rank& rank, int operation) {
    ++rank.done;
    release(rank, at(rank.after_done, operation));
  }

  void queue_ready(int number, bool at_once) {
    Rank& rank = at(ranks_, number);
    std::vector<int> ready;
    std::swap(ready, rank.ready);
    const auto& operations = at(program_, number);
    std::ranges::stable_sort(ready, {}, [&](int operation) { return at(operations, operation).kind; });
    for (const int operation : ready) {
      const bool sends = at(operations, operation).kind == Kind::send;
      const std::int64_t free = sends ? std::max(rank.processor, rank.sending) : rank.processor;
      push({at_once ? 0 : free, 0, number, operation, 0, false});
    }
  }

  void begin(Event event) {
    Rank& rank = at(ranks_, event.rank);
    const GoalOperation& operation = at(at(program_, event.rank), event.operation);
    if (operation.kind == Kind::receive) {
      started(rank, event.operation);
      const auto found = rank.unexpected.find({operation.peer, operation.tag});
      if (found == rank.unexpected.end() || found->second == 0) {
        rank.posted[{operation.peer, operation.tag}].push_back(event.operation);
        return;
      }
      --found->second;
      finished(rank, event.operation);
      return;
    }
    const bool sends = operation.kind == Kind::send;
    const std::int64_t free = sends ? std::max(rank.processor, rank.sending) : rank.processor;
    if (free > event.time) {
      event.time = free;
      events_.push(event);
      return;
    }
    started(rank, event.operation);
    if (sends) {
      const std::int64_t more = operation.size - 1;
      rank.processor = event.time + costs_.overhead + more * costs_.overhead_per_byte;
      rank.sending = event.time + costs_.gap + more * costs_.gap_per_byte;
      push({event.time + costs_.overhead + costs_.latency, 0, operation.peer, event.operation, event.rank, true});
    } else {
      rank.processor = event.time + operation.size;
    }
    finished(rank, event.operation);
  }

  void take(Event event) {
    Rank& rank = at(ranks_, event.rank);
    const std::int64_t free = std::max(rank.processor, rank.receiving);
    if (free > event.time) {
      event.time = free;
      events_.push(event);
      return;
    }
    const GoalOperation& sent = at(at(program_, event.sender), event.operation);
    const std::int64_t more = sent.size - 1;
    rank.processor = event.time + costs_.overhead + more * std::max(costs_.overhead_per_byte, costs_.gap_per_byte);
    rank.receiving = event.time + costs_.gap + more * costs_.gap_per_byte;
    auto& posted = rank.posted[{event.sender, sent.tag}];
    if (posted.empty()) {
      ++rank.unexpected[{event.sender, sent.tag}];
      return;
    }
    const int receive = posted.front();
    posted.pop_front();
    finished(rank, receive);
  }

  const GoalProgram& program_;
  LogGops costs_;
  std::vector<Rank> ranks_;
  std::priority_queue<Event> events_;
  std::int64_t next_number_ = 0;
};

void check(const LogGops& costs) {
  for (const std::int64_t one :
       {costs.latency, costs.overhead, costs.gap, costs.gap_per_byte, costs.overhead_per_byte}) {
    if (one < 0) throw BadInput("loggops: expected costs of 0 or more nanoseconds, found " + std::to_string(one));
  }
}

}  // namespace

std::vector<std::int64_t> loggops(const Traffic& traffic, const LogGops& costs, const GoalOptions& options) {
  check(costs);
  return LogGopsRun(detail::goal_program(traffic, options), costs).run();
}

}  // namespace onehop
