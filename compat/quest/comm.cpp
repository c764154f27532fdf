// A drop-in replacement of QuEST's communication layer, over the functions of compat/quest.h. It defines all functions
// that QuEST's comm_config.hpp and comm_routines.hpp declare, and is compiled inside QuEST instead of the two sources
// of these headers (docs/howto/compat_quest.md).
//
// Registers on accelerators are exchanged through the host's memory.
#include <string.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "compat/quest.h"
#include "quest/src/comm/comm_config.hpp"
#include "quest/src/comm/comm_indices.hpp"
#include "quest/src/comm/comm_routines.hpp"
#include "quest/src/core/errors.hpp"
#include "quest/src/gpu/gpu_config.hpp"

namespace {

std::size_t bytes_of(qindex amplitudes) { return static_cast<std::size_t>(amplitudes) * sizeof(qcomp); }

void require_ranks() {
  if (!comm_isInit()) error_commButEnvNotDistributed();
}

// The checks that QuEST requires before a register is exchanged.
void check_exchange(const Qureg& qureg, qindex sent_from, qindex received_at, qindex amplitudes, int rank) {
  assert_commBoundsAreValid(qureg, sent_from, received_at, amplitudes);
  assert_commQuregIsDistributed(qureg);
  assert_pairRankIsDistinct(qureg, rank);
}

void check_half_exchange(const Qureg& qureg, qindex amplitudes, int rank) {
  const auto [sent_from, received_at] = getSubBufferSendRecvInds(qureg);
  check_exchange(qureg, sent_from, received_at, amplitudes, rank);
  assert_bufferSendRecvDoesNotOverlap(sent_from, received_at, amplitudes);
}

// Copy one of a register's arrays from the accelerator to the host, and back.
void fetch(const Qureg& qureg, qcomp* accelerator, qcomp* host, qindex amplitudes) {
  if (qureg.isGpuAccelerated) gpu_copyGpuToCpu(qureg, accelerator, host, amplitudes);
}

void deliver(const Qureg& qureg, qcomp* host, qcomp* accelerator, qindex amplitudes) {
  if (qureg.isGpuAccelerated) gpu_copyCpuToGpu(qureg, host, accelerator, amplitudes);
}

// All-gathers pieces of amplitudes: rank r contributes the piece that starts at begins[r].
void combine(qcomp* all, const std::vector<qindex>& begins, const std::vector<qindex>& amplitudes) {
  const auto ranks = static_cast<std::size_t>(comm_getNumNodes());
  if (begins.size() != ranks || amplitudes.size() != ranks) error_commGivenInconsistentNumSubArraysANodes();
  std::vector<std::size_t> begin_bytes;
  std::vector<std::size_t> bytes;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    begin_bytes.push_back(bytes_of(begins[rank]));
    bytes.push_back(bytes_of(amplitudes[rank]));
  }
  onehop_quest_combine(all, begin_bytes.data(), bytes.data());
}

void combine_equal(qcomp* all, const qcomp* mine, qindex amplitudes) {
  const int ranks = comm_getNumNodes();
  std::vector<qindex> begins;
  for (int rank = 0; rank < ranks; ++rank) begins.push_back(rank * amplitudes);
  std::copy(mine, mine + amplitudes, all + comm_getRank() * amplitudes);
  combine(all, begins, std::vector<qindex>(static_cast<std::size_t>(ranks), amplitudes));
}

// One of these is for the precision that QuEST is built with.
[[maybe_unused]] void sum_reals(float* values, std::size_t count) { onehop_quest_sum_floats(values, count); }
[[maybe_unused]] void sum_reals(double* values, std::size_t count) { onehop_quest_sum_doubles(values, count); }
[[maybe_unused]] void sum_reals(long double* values, std::size_t count) {
  onehop_quest_sum_long_doubles(values, count);
}

void sum(qreal* values, qindex count) {
  require_ranks();
  sum_reals(values, static_cast<std::size_t>(count));
}

template <class Value>
void broadcast(Value* values, qindex count, int root) {
  require_ranks();
  onehop_quest_broadcast(values, static_cast<std::size_t>(count) * sizeof(Value), root);
}

}  // namespace

// comm_config.hpp

// QuEST asks this to know whether it may distribute at all.
bool comm_isMpiCompiled() { return true; }

bool comm_isMpiGpuAware() { return false; }

bool comm_isInit() { return onehop_quest_is_open() != 0; }

void comm_init() {
  if (comm_isInit()) error_commAlreadyInit();
  onehop_quest_open();
}

// QuEST's validation may call this without comm_init.
void comm_end() {
  if (comm_isInit()) onehop_quest_close();
}

int comm_getRank() { return comm_isInit() ? onehop_quest_rank() : ROOT_RANK; }

int comm_getNumNodes() { return comm_isInit() ? onehop_quest_ranks() : 1; }

bool comm_isRootNode(int rank) { return rank == ROOT_RANK; }

bool comm_isRootNode() { return comm_isRootNode(comm_getRank()); }

void comm_sync() {
  if (comm_isInit()) onehop_quest_sync();
}

// comm_routines.hpp: between two ranks

void comm_exchangeAmpsToBuffers(Qureg qureg, qindex sendInd, qindex recvInd, qindex numAmps, int pairRank) {
  check_exchange(qureg, sendInd, recvInd, numAmps, pairRank);
  fetch(qureg, qureg.gpuAmps + sendInd, qureg.cpuAmps + sendInd, numAmps);
  onehop_quest_exchange(qureg.cpuAmps + sendInd, qureg.cpuCommBuffer + recvInd, bytes_of(numAmps), pairRank);
  deliver(qureg, qureg.cpuCommBuffer + recvInd, qureg.gpuCommBuffer + recvInd, numAmps);
}

void comm_exchangeAmpsToBuffers(Qureg qureg, int pairRank) {
  comm_exchangeAmpsToBuffers(qureg, 0, 0, qureg.numAmpsPerNode, pairRank);
}

void comm_exchangeSubBuffers(Qureg qureg, qindex numAmps, int pairRank) {
  check_half_exchange(qureg, numAmps, pairRank);
  const auto [sent_from, received_at] = getSubBufferSendRecvInds(qureg);
  fetch(qureg, qureg.gpuCommBuffer + sent_from, qureg.cpuCommBuffer + sent_from, numAmps);
  onehop_quest_exchange(qureg.cpuCommBuffer + sent_from, qureg.cpuCommBuffer + received_at, bytes_of(numAmps),
                        pairRank);
  deliver(qureg, qureg.cpuCommBuffer + received_at, qureg.gpuCommBuffer + received_at, numAmps);
}

void comm_asynchSendSubBuffer(Qureg qureg, qindex numElems, int pairRank) {
  check_half_exchange(qureg, numElems, pairRank);
  const qindex sent_from = getSubBufferSendInd(qureg);
  fetch(qureg, qureg.gpuCommBuffer + sent_from, qureg.cpuCommBuffer + sent_from, numElems);
  onehop_quest_send(qureg.cpuCommBuffer + sent_from, bytes_of(numElems), pairRank);
}

void comm_receiveArrayToBuffer(Qureg qureg, qindex numElems, int pairRank) {
  check_half_exchange(qureg, numElems, pairRank);
  const qindex received_at = getBufferRecvInd();
  onehop_quest_receive(qureg.cpuCommBuffer + received_at, bytes_of(numElems), pairRank);
  deliver(qureg, qureg.cpuCommBuffer + received_at, qureg.gpuCommBuffer + received_at, numElems);
}

void comm_sendAmpsToRoot(int sendRank, qcomp* send, qcomp* recv, qindex numAmps) {
  require_ranks();
  assert_commPayloadIsPowerOf2(numAmps);
  const int rank = comm_getRank();
  if (sendRank == ROOT_RANK) {
    if (rank == ROOT_RANK) std::copy(send, send + numAmps, recv);
  } else if (rank == sendRank) {
    onehop_quest_send(send, bytes_of(numAmps), ROOT_RANK);
    onehop_quest_flush();
  } else if (rank == ROOT_RANK) {
    onehop_quest_receive(recv, bytes_of(numAmps), sendRank);
  }
}

// comm_routines.hpp: between all ranks

void comm_combineAmpsIntoBuffer(Qureg receiver, Qureg sender) {
  assert_commQuregIsDistributed(receiver);
  assert_commQuregIsDistributed(sender);
  assert_receiverCanFitSendersEntireState(receiver, sender);
  fetch(sender, sender.gpuAmps, sender.cpuAmps, sender.numAmpsPerNode);
  combine_equal(receiver.cpuCommBuffer, sender.cpuAmps, sender.numAmpsPerNode);
  deliver(receiver, receiver.cpuCommBuffer, receiver.gpuCommBuffer, sender.numAmps);
}

void comm_combineElemsIntoBuffer(Qureg receiver, FullStateDiagMatr sender) {
  assert_commQuregIsDistributed(receiver);
  assert_commFullStateDiagMatrIsDistributed(sender);
  assert_receiverCanFitSendersEntireElems(receiver, sender);
  combine_equal(receiver.cpuCommBuffer, sender.cpuElems, sender.numElemsPerNode);
  deliver(receiver, receiver.cpuCommBuffer, receiver.gpuCommBuffer, sender.numElems);
}

// This rank's own piece is already in its place, so its source does not matter.
void comm_combineSubArrays(qcomp* recv, std::vector<qindex> globalRecvInds, std::vector<qindex> /*localSendInds*/,
                           std::vector<qindex> numAmpsPerRank) {
  require_ranks();
  combine(recv, globalRecvInds, numAmpsPerRank);
}

void comm_broadcastAmp(int sendRank, qcomp* sendAmp) { broadcast(sendAmp, 1, sendRank); }

void comm_broadcastIntsFromRoot(int* arr, qindex length) { broadcast(arr, length, ROOT_RANK); }

void comm_broadcastUnsignedsFromRoot(unsigned* arr, qindex length) { broadcast(arr, length, ROOT_RANK); }

// A complex number is two real ones in a row.
void comm_reduceAmp(qcomp* localAmp) { sum(reinterpret_cast<qreal*>(localAmp), 2); }

void comm_reduceReal(qreal* localReal) { sum(localReal, 1); }

void comm_reduceReals(qreal* localReals, qindex numLocalReals) { sum(localReals, numLocalReals); }

bool comm_isTrueOnAllNodes(bool val) {
  qreal untrue = val ? 0 : 1;
  comm_reduceReal(&untrue);
  return untrue == 0;
}

bool comm_isTrueOnRootNode(bool val) {
  unsigned truth = val ? 1 : 0;
  comm_broadcastUnsignedsFromRoot(&truth, 1);
  return truth != 0;
}

std::vector<std::string> comm_gatherStringsToRoot(char* localChars, int maxNumLocalChars) {
  require_ranks();
  const auto length = static_cast<std::size_t>(maxNumLocalChars);
  // A negative length is refused by the gathering, as one that no memory has.
  std::vector<char> everybodys(maxNumLocalChars > 0 ? length * static_cast<std::size_t>(comm_getNumNodes()) : 0);
  onehop_quest_gather_to_root(localChars, length, everybodys.data());
  std::vector<std::string> strings;
  for (std::size_t at = 0; at < everybodys.size(); at += length) {
    strings.emplace_back(&everybodys[at], strnlen(&everybodys[at], length));
  }
  return strings;
}
