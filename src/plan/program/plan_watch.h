// What may watch the runs of a plan: a guard of its arrays (src/plan/guard/guard.h), or the trace of the run.
#pragma once

namespace onehop::detail {

class PlanWatch {
 public:
  PlanWatch() = default;
  virtual ~PlanWatch() = default;
  PlanWatch(const PlanWatch&) = delete;
  PlanWatch& operator=(const PlanWatch&) = delete;

  // A run begins.
  virtual void begins() = 0;
  // The program goes on until open().
  virtual void close() = 0;
  virtual void open() = 0;
  // The run is complete. May throw.
  virtual void report() = 0;
};

}  // namespace onehop::detail
