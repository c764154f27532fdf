// The part of QuEST that compat/quest/comm.cpp needs, declared for its test: types with the members that it uses, the
// functions that it defines, and those that it calls. The test's stand-ins for QuEST's headers all include this file.
#pragma once

#include <complex>
#include <string>
#include <utility>
#include <vector>

using qreal = double;
using qcomp = std::complex<qreal>;
using qindex = long long;

struct Qureg {
  int isGpuAccelerated = 0;
  int isDistributed = 1;
  int rank = 0;
  qindex numAmps = 0;
  qindex numAmpsPerNode = 0;
  qcomp* cpuAmps = nullptr;
  qcomp* gpuAmps = nullptr;
  qcomp* cpuCommBuffer = nullptr;
  qcomp* gpuCommBuffer = nullptr;
};

struct FullStateDiagMatr {
  int isDistributed = 1;
  qindex numElems = 0;
  qindex numElemsPerNode = 0;
  qcomp* cpuElems = nullptr;
};

// comm_config.hpp
inline constexpr int ROOT_RANK = 0;
bool comm_isMpiCompiled();
bool comm_isMpiGpuAware();
void comm_init();
void comm_end();
void comm_sync();
int comm_getRank();
int comm_getNumNodes();
bool comm_isInit();
bool comm_isRootNode();
bool comm_isRootNode(int rank);

// comm_indices.hpp: half a buffer is sent from the buffer's middle and received at its start.
inline qindex getSubBufferSendInd(Qureg qureg) { return qureg.numAmpsPerNode / 2; }
inline qindex getBufferRecvInd() { return 0; }
inline std::pair<qindex, qindex> getSubBufferSendRecvInds(Qureg qureg) { return {qureg.numAmpsPerNode / 2, 0}; }

// comm_routines.hpp
void comm_exchangeAmpsToBuffers(Qureg qureg, qindex sendInd, qindex recvInd, qindex numAmps, int pairRank);
void comm_exchangeAmpsToBuffers(Qureg qureg, int pairRank);
void comm_exchangeSubBuffers(Qureg qureg, qindex numAmps, int pairRank);
void comm_asynchSendSubBuffer(Qureg qureg, qindex numElems, int pairRank);
void comm_receiveArrayToBuffer(Qureg qureg, qindex numElems, int pairRank);
void comm_combineAmpsIntoBuffer(Qureg receiver, Qureg sender);
void comm_combineElemsIntoBuffer(Qureg receiver, FullStateDiagMatr sender);
void comm_broadcastAmp(int sendRank, qcomp* sendAmp);
void comm_sendAmpsToRoot(int sendRank, qcomp* send, qcomp* recv, qindex numAmps);
void comm_broadcastIntsFromRoot(int* arr, qindex length);
void comm_broadcastUnsignedsFromRoot(unsigned* arr, qindex length);
void comm_combineSubArrays(qcomp* recv, std::vector<qindex> globalRecvInds, std::vector<qindex> localSendInds,
                           std::vector<qindex> numAmpsPerRank);
void comm_reduceAmp(qcomp* localAmp);
void comm_reduceReal(qreal* localReal);
void comm_reduceReals(qreal* localReals, qindex numLocalReals);
bool comm_isTrueOnAllNodes(bool val);
bool comm_isTrueOnRootNode(bool val);
std::vector<std::string> comm_gatherStringsToRoot(char* localChars, int maxNumLocalChars);

// errors.hpp
void error_commAlreadyInit();
void error_commButEnvNotDistributed();
void error_commGivenInconsistentNumSubArraysANodes();
void assert_commBoundsAreValid(Qureg qureg, qindex sendInd, qindex recvInd, qindex numAmps);
void assert_commPayloadIsPowerOf2(qindex numAmps);
void assert_commQuregIsDistributed(Qureg qureg);
void assert_commFullStateDiagMatrIsDistributed(FullStateDiagMatr matr);
void assert_pairRankIsDistinct(Qureg qureg, int pairRank);
void assert_bufferSendRecvDoesNotOverlap(qindex sendInd, qindex recvInd, qindex numAmps);
void assert_receiverCanFitSendersEntireState(Qureg receiver, Qureg sender);
void assert_receiverCanFitSendersEntireElems(Qureg receiver, FullStateDiagMatr sender);

// gpu_config.hpp
void gpu_copyGpuToCpu(Qureg qureg, qcomp* gpuArr, qcomp* cpuArr, qindex numElems);
void gpu_copyCpuToGpu(Qureg qureg, qcomp* cpuArr, qcomp* gpuArr, qindex numElems);
