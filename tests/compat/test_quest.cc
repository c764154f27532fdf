// Every function of QuEST's communication layer (compat/quest/comm.cpp) and of compat/quest.h: exchanges of whole and
// of half registers, in which some ranks take no part; broadcasts, pieces, sums, strings.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compat/quest.h"
#include "tests/compat/check.h"
#include "tests/compat/quest/stand_in.h"

namespace {

// A value that identifies its rank, its time and its place in the array.
qcomp value(int rank, int step, qindex at) {
  return {static_cast<qreal>(pattern(rank, 0, step, static_cast<int>(at))), static_cast<qreal>(at) + 0.5};
}

// A register whose amplitudes are this rank's values, and whose buffer holds nothing.
struct Register {
  std::vector<qcomp> amplitudes;
  std::vector<qcomp> buffer;
  std::vector<qcomp> accelerator_amplitudes;
  std::vector<qcomp> accelerator_buffer;
  Qureg qureg;

  Register(qindex each, int step, bool accelerated = false) : amplitudes(each), buffer(each) {
    for (qindex at = 0; at < each; ++at) amplitudes[at] = value(my_rank(), step, at);
    qureg.rank = my_rank();
    qureg.numAmpsPerNode = each;
    qureg.numAmps = each * all_ranks();
    qureg.cpuAmps = amplitudes.data();
    qureg.cpuCommBuffer = buffer.data();
    if (!accelerated) return;
    accelerator_amplitudes = amplitudes;
    accelerator_buffer = buffer;
    std::ranges::fill(amplitudes, qcomp{-1});
    qureg.isGpuAccelerated = 1;
    qureg.gpuAmps = accelerator_amplitudes.data();
    qureg.gpuCommBuffer = accelerator_buffer.data();
  }
  std::vector<qcomp>& seen_buffer() { return qureg.isGpuAccelerated ? accelerator_buffer : buffer; }
};

void configuration() {
  CHECK(comm_isMpiCompiled());
  CHECK(!comm_isMpiGpuAware());
  CHECK(!comm_isInit());
  CHECK(comm_getRank() == 0 && comm_getNumNodes() == 1 && comm_isRootNode());
  comm_sync();  // both are allowed before the ranks have met
  comm_end();
  comm_init();
  CHECK(comm_isInit());
  CHECK(comm_getRank() == my_rank() && comm_getNumNodes() == all_ranks());
  CHECK(comm_isRootNode() == (my_rank() == 0));
  CHECK(comm_isRootNode(0) && !comm_isRootNode(1));
}

// Pairs that differ in one bit of their numbers. Where `from` is above 0, only ranks from there on take part, as in a
// gate with a control, and the others go ahead.
void whole_registers(qindex each, bool accelerated) {
  for (int bit = 1; bit < all_ranks(); bit *= 2) {
    for (int from : {0, 2}) {
      if ((from & bit) != 0) continue;
      const int partner = my_rank() ^ bit;
      Register mine(each, bit, accelerated);
      if ((my_rank() & from) != from) continue;
      comm_exchangeAmpsToBuffers(mine.qureg, partner);
      for (qindex at = 0; at < each; ++at) CHECK(mine.seen_buffer()[at] == value(partner, bit, at));
      comm_exchangeAmpsToBuffers(mine.qureg, 1, each / 2, each / 4, partner);
      for (qindex at = 0; at < each / 4; ++at) CHECK(mine.seen_buffer()[each / 2 + at] == value(partner, bit, 1 + at));
    }
  }
}

void half_registers(qindex each, bool accelerated) {
  const qindex half = each / 2;
  for (int bit = 1; bit < all_ranks(); bit *= 2) {
    const int partner = my_rank() ^ bit;
    Register mine(each, bit, accelerated);
    for (qindex at = 0; at < half; ++at) mine.seen_buffer()[half + at] = value(my_rank(), bit, at);
    comm_exchangeSubBuffers(mine.qureg, half, partner);
    for (qindex at = 0; at < half; ++at) CHECK(mine.seen_buffer()[at] == value(partner, bit, at));

    if ((my_rank() & bit) != 0) {
      comm_asynchSendSubBuffer(mine.qureg, half, partner);
      std::ranges::fill(mine.qureg.isGpuAccelerated ? mine.accelerator_amplitudes : mine.amplitudes, qcomp{-2});
    } else {
      std::ranges::fill(mine.seen_buffer(), qcomp{-3});
      comm_receiveArrayToBuffer(mine.qureg, half, partner);
      for (qindex at = 0; at < half; ++at) CHECK(mine.seen_buffer()[at] == value(partner, bit, at));
    }
    comm_sync();
  }
}

void combinations() {
  const qindex each = 5000;
  for (const bool accelerated : {false, true}) {
    Register sender(each, 3, accelerated);
    Register receiver(each * all_ranks(), 4, accelerated);
    comm_combineAmpsIntoBuffer(receiver.qureg, sender.qureg);
    for (qindex at = 0; at < sender.qureg.numAmps; ++at) {
      CHECK(receiver.seen_buffer()[at] == value(static_cast<int>(at / each), 3, at % each));
    }
    std::vector<qcomp> elements(each);
    for (qindex at = 0; at < each; ++at) elements[at] = value(my_rank(), 5, at);
    FullStateDiagMatr matrix;
    matrix.numElems = each * all_ranks();
    matrix.numElemsPerNode = each;
    matrix.cpuElems = elements.data();
    comm_combineElemsIntoBuffer(receiver.qureg, matrix);
    for (qindex at = 0; at < matrix.numElems; ++at) {
      CHECK(receiver.seen_buffer()[at] == value(static_cast<int>(at / each), 5, at % each));
    }
  }
}

// Rank r contributes r pieces, so rank 0 contributes none; a gap follows each.
void pieces() {
  const int n = all_ranks();
  std::vector<qindex> begins(n);
  std::vector<qindex> lengths(n);
  qindex end = 1;
  for (int rank = 0; rank < n; ++rank) {
    begins[rank] = end;
    lengths[rank] = 700 * rank;
    end += lengths[rank] + 1;
  }
  std::vector<qcomp> all(end, qcomp{-1});
  for (qindex at = 0; at < lengths[my_rank()]; ++at) all[begins[my_rank()] + at] = value(my_rank(), 6, at);
  comm_combineSubArrays(all.data(), begins, std::vector<qindex>(n), lengths);
  for (int rank = 0; rank < n; ++rank) {
    CHECK(all[begins[rank] - 1] == qcomp{-1});
    for (qindex at = 0; at < lengths[rank]; ++at) CHECK(all[begins[rank] + at] == value(rank, 6, at));
  }
}

void broadcasts() {
  const int n = all_ranks();
  for (int root = 0; root < n; ++root) {
    qcomp amplitude = value(my_rank(), 7, 0);
    comm_broadcastAmp(root, &amplitude);
    CHECK(amplitude == value(root, 7, 0));

    std::vector<qcomp> sent(1 << 12);
    for (std::size_t at = 0; at < sent.size(); ++at) sent[at] = value(my_rank(), 8, static_cast<qindex>(at));
    std::vector<qcomp> received(sent.size());
    comm_sendAmpsToRoot(root, sent.data(), received.data(), static_cast<qindex>(sent.size()));
    if (my_rank() != 0) continue;
    for (std::size_t at = 0; at < sent.size(); ++at) CHECK(received[at] == value(root, 8, static_cast<qindex>(at)));
  }
  int numbers[3] = {my_rank(), my_rank() + 10, my_rank() + 20};
  comm_broadcastIntsFromRoot(numbers, 3);
  CHECK(numbers[0] == 0 && numbers[1] == 10 && numbers[2] == 20);
  unsigned seeds[2] = {static_cast<unsigned>(my_rank()), 4000000000U + static_cast<unsigned>(my_rank())};
  comm_broadcastUnsignedsFromRoot(seeds, 2);
  CHECK(seeds[0] == 0 && seeds[1] == 4000000000U);
}

template <class Real>
Real share(int rank, std::size_t at) {
  return Real(1) / static_cast<Real>(3 + rank + static_cast<int>(at % 1000));
}

// Sums are added in the order of ranks, exactly to the last bit.
template <class Real, class Sum>
void check_sums(std::size_t count, Sum sum) {
  std::vector<Real> values(count);
  for (std::size_t at = 0; at < count; ++at) values[at] = share<Real>(my_rank(), at);
  sum(values.data(), count);
  for (std::size_t at = 0; at < count; ++at) {
    Real expected = share<Real>(0, at);
    for (int rank = 1; rank < all_ranks(); ++rank) expected += share<Real>(rank, at);
    CHECK(values[at] == expected);
  }
}

void sums() {
  for (const std::size_t count : {0, 1, 8192, 20000}) {  // of several blocks too
    check_sums<float>(count, onehop_quest_sum_floats);
    check_sums<double>(count, onehop_quest_sum_doubles);
    check_sums<long double>(count, onehop_quest_sum_long_doubles);
    check_sums<qreal>(count, [](qreal* values, std::size_t n) { comm_reduceReals(values, static_cast<qindex>(n)); });
  }
  const int n = all_ranks();
  qcomp amplitude(1 + my_rank(), -my_rank());
  comm_reduceAmp(&amplitude);
  CHECK(amplitude == qcomp(n * (n + 1) / 2, -n * (n - 1) / 2));
  qreal number = my_rank() + 0.25;
  comm_reduceReal(&number);
  CHECK(number == n * (n - 1) / 2 + 0.25 * n);
}

void truths() {
  CHECK(comm_isTrueOnAllNodes(true));
  CHECK(!comm_isTrueOnAllNodes(false));
  CHECK(comm_isTrueOnAllNodes(my_rank() == 0) == (all_ranks() == 1));
  CHECK(comm_isTrueOnRootNode(my_rank() == 0));
  CHECK(!comm_isTrueOnRootNode(my_rank() != 0));
}

void strings() {
  char mine[8] = "node ";
  mine[5] = static_cast<char>('a' + my_rank());
  const std::vector<std::string> all = comm_gatherStringsToRoot(mine, sizeof mine);
  CHECK(static_cast<int>(all.size()) == all_ranks());
  const std::vector<std::string> cut = comm_gatherStringsToRoot(mine, 4);  // without a NUL
  if (my_rank() != 0) return;
  CHECK(cut.front() == "node");
  for (int rank = 0; rank < all_ranks(); ++rank)
    CHECK(all[rank] == std::string("node ") + static_cast<char>('a' + rank));
}

ERROR(begin_twice, 1, 1, "QuEST refuses: begun twice") {
  comm_init();
  comm_init();
}

ERROR(open_twice, 1, 1, "onehop_quest_open: expected to be called once") {
  onehop_quest_open();
  onehop_quest_open();
}

ERROR(not_begun, 1, 1, "QuEST refuses: not distributed") {
  qcomp amplitude;
  comm_reduceAmp(&amplitude);
}

ERROR(use_after_close, 1, 1,
      "onehop_quest_sync: expected connected ranks, found a connection that onehop_quest_close has closed") {
  comm_init();
  comm_end();
  comm_sync();
}

ERROR(exchange_with_oneself, 2, 1, "QuEST refuses: a pair of one rank") {
  comm_init();
  comm_exchangeAmpsToBuffers(Register(4, 0).qureg, my_rank());
}

ERROR(exchange_too_many, 2, 1, "QuEST refuses: amplitudes out of bounds") {
  comm_init();
  comm_exchangeAmpsToBuffers(Register(4, 0).qureg, 1, 0, 4, my_rank() ^ 1);
}

ERROR(exchange_overlap, 2, 1, "QuEST refuses: amplitudes out of bounds") {
  comm_init();
  comm_exchangeSubBuffers(Register(4, 0).qureg, 3, my_rank() ^ 1);
}

ERROR(bytes_that_overlap, 2, 1, "found two of 8 bytes which are 4 bytes apart") {
  onehop_quest_open();
  char memory[12] = {};
  onehop_quest_exchange(memory, memory + 4, 8, my_rank() ^ 1);
}

ERROR(wrong_rank, 2, 1, "onehop_quest_send: expected a rank from 0 to 1, found 2") {
  onehop_quest_open();
  onehop_quest_send("a", 1, 2);
}

ERROR(no_memory, 2, 1, "onehop_quest_receive: expected memory of 16 bytes, found a null pointer") {
  onehop_quest_open();
  onehop_quest_receive(nullptr, 16, my_rank() ^ 1);
}

ERROR(different_lengths, 2, 1, "bytes from rank") {
  onehop_quest_open();
  char send[16] = {};
  char receive[16];
  onehop_quest_exchange(send, receive, my_rank() == 0 ? 8 : 16, my_rank() ^ 1);
}

ERROR(negative_strings, 1, 1, "onehop_quest_gather_to_root: expected ") {
  comm_init();
  char name[8] = "node";
  comm_gatherStringsToRoot(name, -1);
}

ERROR(endless, 2, 1, "onehop_quest_exchange: expected at most the") {
  onehop_quest_open();
  char send[8] = {};
  char receive[8];
  onehop_quest_exchange(send, receive, std::size_t{1} << 63, my_rank() ^ 1);
}

ERROR(endless_sum, 1, 1, "onehop_quest_sum_doubles: expected fewer values") {
  onehop_quest_open();
  double value = 1;
  onehop_quest_sum_doubles(&value, std::size_t{1} << 61);
}

ERROR(different_sums, 2, 1, "bytes from rank") {
  onehop_quest_open();
  float values[2] = {1, 2};
  onehop_quest_sum_floats(values, my_rank() == 0 ? 2 : 1);
}

ERROR(endless_combination, 1, 1, "onehop_quest_combine: expected ") {
  onehop_quest_open();
  char all[8] = {};
  const std::size_t begin = SIZE_MAX - 3;
  const std::size_t bytes = 8;
  onehop_quest_combine(all, &begin, &bytes);
}

ERROR(combination_beyond_memory, 1, 1, "onehop_quest_combine: expected at most the ") {
  onehop_quest_open();
  char all[8] = {};
  const std::size_t begin = (std::size_t{1} << 61) + 1;
  const std::size_t bytes = 8;
  onehop_quest_combine(all, &begin, &bytes);
}

ERROR(parts_that_overlap, 2, 1, "found those of rank 0 and rank 1") {
  onehop_quest_open();
  char all[16] = {};
  const std::size_t begins[2] = {0, 4};
  const std::size_t bytes[2] = {8, 8};
  onehop_quest_combine(all, begins, bytes);
}

ERROR(no_lengths, 2, 1, "onehop_quest_combine: expected memory of 16 bytes") {
  onehop_quest_open();
  char all[8] = {};
  const std::size_t begins[2] = {0, 4};
  onehop_quest_combine(all, begins, nullptr);
}

ERROR(sync_in_child, 1, 1, "was forked from") {
  onehop_quest_open();
  in_child(onehop_quest_sync);
}

ERROR(too_few_pieces, 2, 1, "QuEST refuses: not one piece for each rank") {
  comm_init();
  qcomp all[2];
  comm_combineSubArrays(all, {0}, {0}, {1});
}

ERROR(lost_peer, 2, 3, "rank 1") {
  comm_init();
  if (my_rank() == 1) _exit(0);
  comm_exchangeAmpsToBuffers(Register(4, 0).qureg, 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (made_error(argc, argv)) return 0;
  configuration();
  for (const bool accelerated : {false, true}) {
    for (const qindex each : {4, 1000, 70000}) {
      whole_registers(each, accelerated);
      half_registers(each, accelerated);
    }
  }
  combinations();
  pieces();
  broadcasts();
  sums();
  truths();
  strings();
  comm_end();
  return 0;
}
