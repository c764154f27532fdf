// planted none|relaxed_flag|missing_barrier: an all-reduce with this fault, in which the thread sanitizer finds a race.
#include <cstring>
#include <iostream>

#include "tests/device/thread_team.h"

using namespace onehop::device;  // NOLINT(google-build-using-namespace)
using onehop::device::testing::Fault;
using onehop::device::testing::reduce_on_threads;

int main(int count, char** arguments) {
  const char* const fault = count > 1 ? arguments[1] : "";
  if (std::strcmp(fault, "relaxed_flag") == 0) {
    reduce_on_threads<With<Fp16>::Steps, Fault::relaxed_flag>(2, 2);
  } else if (std::strcmp(fault, "missing_barrier") == 0) {
    reduce_on_threads<With<Fp16>::Steps, Fault::missing_barrier>(2, 2);
  } else {
    std::cout << (reduce_on_threads<With<Fp16>::Steps, Fault::none>(2, 2) ? "right sums\n" : "wrong sums\n");
  }
}
