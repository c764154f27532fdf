// Stand-ins for QuEST's errors, each with its own message, and for an accelerator whose memory is the host's.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/compat/quest/stand_in.h"

namespace {

[[noreturn]] void refuse(const char* why) {
  std::fprintf(stderr, "QuEST refuses: %s\n", why);
  std::exit(1);
}

void require(bool condition, const char* why) {
  if (!condition) refuse(why);
}

}  // namespace

void error_commAlreadyInit() { refuse("begun twice"); }
void error_commButEnvNotDistributed() { refuse("not distributed"); }
void error_commGivenInconsistentNumSubArraysANodes() { refuse("not one piece for each rank"); }

void assert_commBoundsAreValid(Qureg qureg, qindex sendInd, qindex recvInd, qindex numAmps) {
  require(sendInd >= 0 && recvInd >= 0 && numAmps > 0 && std::max(sendInd, recvInd) + numAmps <= qureg.numAmpsPerNode,
          "amplitudes out of bounds");
}
void assert_commPayloadIsPowerOf2(qindex numAmps) {
  require(numAmps > 0 && (numAmps & (numAmps - 1)) == 0, "not a power of two");
}
void assert_commQuregIsDistributed(Qureg qureg) { require(qureg.isDistributed != 0, "a register of one rank"); }
void assert_commFullStateDiagMatrIsDistributed(FullStateDiagMatr matr) {
  require(matr.isDistributed != 0, "a matrix of one rank");
}
void assert_pairRankIsDistinct(Qureg qureg, int pairRank) { require(qureg.rank != pairRank, "a pair of one rank"); }
void assert_bufferSendRecvDoesNotOverlap(qindex sendInd, qindex recvInd, qindex numAmps) {
  require(sendInd >= recvInd + numAmps || recvInd >= sendInd + numAmps, "halves that overlap");
}
void assert_receiverCanFitSendersEntireState(Qureg receiver, Qureg sender) {
  require(receiver.numAmpsPerNode >= sender.numAmps, "a state too long");
}
void assert_receiverCanFitSendersEntireElems(Qureg receiver, FullStateDiagMatr sender) {
  require(receiver.numAmpsPerNode >= sender.numElems, "a matrix too long");
}

void gpu_copyGpuToCpu(Qureg /*qureg*/, qcomp* gpuArr, qcomp* cpuArr, qindex numElems) {
  std::copy(gpuArr, gpuArr + numElems, cpuArr);
}
void gpu_copyCpuToGpu(Qureg /*qureg*/, qcomp* cpuArr, qcomp* gpuArr, qindex numElems) {
  std::copy(cpuArr, cpuArr + numElems, gpuArr);
}
