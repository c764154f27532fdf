// planted none|relaxed_flag|missing_barrier sums|plans: with this fault, in which the thread sanitizer finds a race.
#include <iostream>
#include <string>

#include "tests/device/thread_team.h"

using namespace onehop::device;  // NOLINT(google-build-using-namespace)
using onehop::device::testing::Fault;

namespace {

template <Fault fault>
bool run(const std::string& what) {
  if (what == "plans") return onehop::device::testing::move_on_threads<fault>(3);
  return onehop::device::testing::reduce_on_threads<With<Fp16>::Steps, fault>(2, 2);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string fault = count > 2 ? arguments[1] : "";
  const std::string what = count > 2 ? arguments[2] : "";
  if (fault == "relaxed_flag") {
    run<Fault::relaxed_flag>(what);
  } else if (fault == "missing_barrier") {
    run<Fault::missing_barrier>(what);
  } else {
    std::cout << (run<Fault::none>(what) ? "right results\n" : "wrong results\n");
  }
}
