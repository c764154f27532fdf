// Times of QuEST on a register over all ranks: the full Fourier transform, a dense gate on the qubit that ranks divide
// among them, and one on three qubits of which ranks divide one. For comparing a QuEST with this drop-in interface with
// one that has MPI (docs/howto/compat_quest.md). A time is the middle one of ROUNDS, for gates of five times as many.
//
//   time_gates QUBITS ROUNDS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "compat/quest.h"

namespace {

// Returns the median time of `rounds` calls of `work`, in seconds.
template <class Work>
double middle_time(int rounds, Work&& work) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    syncQuESTEnv();
    const auto begin = std::chrono::steady_clock::now();
    work();
    syncQuESTEnv();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[static_cast<std::size_t>(rounds / 2)];
}

}  // namespace

int main(int argc, char** argv) {
  const int qubits = argc > 1 ? std::atoi(argv[1]) : 24;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  initQuESTEnv();
  Qureg qureg = createForcedQureg(qubits);
  initRandomPureState(qureg);

  const qreal half = 0.5;
  CompMatr1 one = getCompMatr1({{{half, half}, {half, -half}}, {{half, -half}, {half, half}}});
  CompMatr three = createCompMatr(3);
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) three.cpuElems[row][column] = row == column ? 1 : 0;
  }
  syncCompMatr(three);
  int targets[] = {0, qubits / 2, qubits - 1};

  setValidationOff();
  const double fourier = middle_time(rounds, [&] { applyFullQuantumFourierTransform(qureg); });
  const double dense_one = middle_time(5 * rounds, [&] { applyCompMatr1(qureg, qubits - 1, one); });
  const double dense_three = middle_time(5 * rounds, [&] { applyCompMatr(qureg, targets, 3, three); });
  if (getQuESTEnv().rank == 0) {
    std::printf("%d qubits, %d ranks: fourier %.4f s, dense gate on the last qubit %.4f s, on three qubits %.4f s\n",
                qubits, getQuESTEnv().numNodes, fourier, dense_one, dense_three);
  }
  destroyCompMatr(three);
  destroyQureg(qureg);
  finalizeQuESTEnv();
  return 0;
}
