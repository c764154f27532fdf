/* Every function of qspi: a ring, all pairs at once, pieces, messages to the same rank, sums. */
#include "compat/qspi.h"
#include "tests/compat/check.h"
#include "tests/compat/qspi/parts.h"

enum { steps = 20, max_ranks = 6 };

static void fill(int* buffer, int to, int step, int ints) {
  for (int i = 0; i < ints; ++i) buffer[i] = pattern(my_rank(), to, step, i);
}

static void check_received(const int* buffer, int from, int step, int ints) {
  for (int i = 0; i < ints; ++i) CHECK(buffer[i] == pattern(from, my_rank(), step, i));
}

static void ring(int ints, int starts) { /* starting to receive may be left out */
  const int n = all_ranks();
  const int to = (my_rank() + 1) % n;
  const int from = (my_rank() + n - 1) % n;
  int* out = malloc((ints + 1) * sizeof(int));
  int* in = malloc((ints + 1) * sizeof(int));
  qspi_msg_t msgs[2] = {receiving(from, in, ints), sending(to, out, ints)};
  qspi_prepare(msgs, 2);
  in[ints] = 77;
  for (int step = 0; step < steps; ++step) {
    fill(out, to, step, ints);
    if (starts) qspi_start(msgs[0]);
    qspi_start(msgs[1]);
    qspi_wait(msgs[1]);
    fill(out, to, -1, ints);
    qspi_wait(msgs[0]);
    check_received(in, from, step, ints);
    CHECK(in[ints] == 77);
  }
  for (int i = 0; i < 2; ++i) qspi_free_msg(msgs[i]);
  free(out);
  free(in);
}

/* Two messages of different length for every pair, a rank and itself included; waits in another order than starts. */
static void all_pairs(void) {
  const int n = all_ranks();
  const int lengths[2] = {10, 5000};
  static int out[max_ranks][2][5000];
  static int in[max_ranks][2][5000];
  qspi_msg_t msgs[4 * max_ranks];
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 2; ++k) {
      msgs[4 * i + k] = sending(i, out[i][k], lengths[k]);
      msgs[4 * i + 2 + k] = receiving(i, in[i][k], lengths[k]);
    }
  }
  qspi_prepare(msgs, 4 * n);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < 2; ++k) fill(out[i][k], i, 2 * step + k, lengths[k]);
    }
    for (int m = 0; m < 4 * n; ++m) qspi_start(msgs[m]);
    for (int m = 4 * n - 1; m >= 0; --m) qspi_wait(msgs[m]);
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < 2; ++k) check_received(in[i][k], i, 2 * step + k, lengths[k]);
    }
  }
  for (int m = 0; m < 4 * n; ++m) qspi_free_msg(msgs[m]);
}

static void pieces(void) {
  const int n = all_ranks();
  const int to = (my_rank() + 1) % n;
  const int from = (my_rank() + n - 1) % n;
  int out[90];
  int in[60];
  void* at[3] = {out + 70, out, out + 30};
  size_t sizes[3] = {20 * sizeof(int), 10 * sizeof(int), 30 * sizeof(int)};
  qspi_msg_t msgs[2] = {qspi_create_msg(), receiving(from, in, 60)};
  qspi_set_send_multi(to, at, sizes, 3, msgs[0]);
  qspi_prepare(msgs, 2);
  fill(out, to, 1, 90);
  qspi_start(msgs[0]);
  qspi_wait(msgs[1]);
  qspi_wait(msgs[0]);
  for (int i = 0; i < 60; ++i) {
    const int sent = i < 20 ? 70 + i : i < 30 ? i - 20 : i;
    CHECK(in[i] == pattern(from, my_rank(), 1, sent));
  }
  qspi_free_msg(msgs[0]);
  qspi_free_msg(msgs[1]);
}

/* Prepares one message after the other, like a program in which each part knows only its own messages. */
static void prepared_one_by_one(void) {
  if (all_ranks() == 1) return;
  int value = my_rank();
  int other = -1;
  if (my_rank() > 1) return;
  qspi_msg_t out = sending(1 - my_rank(), &value, 1);
  qspi_msg_t in = receiving(1 - my_rank(), &other, 1);
  qspi_prepare(my_rank() == 0 ? &out : &in, 1);
  qspi_prepare(my_rank() == 0 ? &in : &out, 1);
  qspi_start(out);
  qspi_wait(out);
  qspi_wait(in);
  CHECK(other == 1 - my_rank());
  qspi_free_msg(out);
  qspi_free_msg(in);
}

/* Lengths around those at which messages and slots are cut, in changing orders. */
static void many_lengths(void) {
  static const int lengths[] = {0, 1, 9, 10, 11, 2030, 2042, 2043, 2044, 2045, 2048, 14000, 16380, 16384, 30000};
  enum { messages = sizeof lengths / sizeof lengths[0] };
  const int n = all_ranks();
  const int to = (my_rank() + 1) % n;
  const int from = (my_rank() + n - 1) % n;
  int* out[messages];
  int* in[messages];
  qspi_msg_t msgs[2 * messages];
  for (int m = 0; m < messages; ++m) {
    out[m] = malloc((lengths[m] + 1) * sizeof(int));
    in[m] = malloc((lengths[m] + 1) * sizeof(int));
    msgs[m] = sending(to, out[m], lengths[m]);
    msgs[messages + m] = receiving(from, in[m], lengths[m]);
  }
  qspi_prepare(msgs, 2 * messages);
  for (int step = 0; step < 2 * steps; ++step) {
    static const int hops[] = {1, 2, 4, 7, 8, 11, 13, 14}; /* with 15 messages all are met */
    const int hop = hops[step % 8];
    for (int m = 0; m < messages; ++m) fill(out[m], to, step + m, lengths[m]);
    for (int i = 0; i < messages; ++i) qspi_start(msgs[(step + i * hop) % messages]);
    for (int i = 0; i < messages; ++i) {
      const int m = (2 * step + i) % messages;
      qspi_wait(msgs[messages + m]);
      check_received(in[m], from, step + m, lengths[m]);
    }
    for (int m = 0; m < messages; ++m) qspi_wait(msgs[m]);
  }
  for (int m = 0; m < messages; ++m) {
    qspi_free_msg(msgs[m]);
    qspi_free_msg(msgs[messages + m]);
    free(out[m]);
    free(in[m]);
  }
}

/* Messages that are prepared but not started together: no wait for one depends on another that is not started. */
static void started_in_part(void) {
  enum { messages = 5 };
  const int n = all_ranks();
  const int to = (my_rank() + 1) % n;
  const int from = (my_rank() + n - 1) % n;
  int out[messages][7];
  int in[messages][7];
  qspi_msg_t msgs[2 * messages];
  for (int m = 0; m < messages; ++m) {
    msgs[m] = sending(to, out[m], 7);
    msgs[messages + m] = receiving(from, in[m], 7);
  }
  qspi_prepare(msgs, 2 * messages);
  for (int step = 0; step < 3 * messages; ++step) {
    const int first = step % messages;
    const int behind = first + 1 + step % 3 < messages ? first + 1 + step % 3 : messages;
    for (int m = first; m < behind; ++m) {
      fill(out[m], to, step + m, 7);
      qspi_start(msgs[m]);
    }
    for (int m = first; m < behind; ++m) {
      qspi_wait(msgs[messages + m]);
      check_received(in[m], from, step + m, 7);
    }
    for (int m = first; m < behind; ++m) qspi_wait(msgs[m]);
  }
  qspi_msg_t alone = sending(to, out[0], 7); /* started, and freed without a wait: it arrives */
  qspi_msg_t beside = sending(to, out[1], 7);
  qspi_msg_t both[2] = {alone, beside};
  qspi_msg_t arriving[2] = {receiving(from, in[0], 7), receiving(from, in[1], 7)};
  qspi_msg_t all[4] = {both[0], both[1], arriving[0], arriving[1]};
  qspi_prepare(all, 4);
  fill(out[0], to, 1000, 7);
  qspi_start(alone);
  qspi_free_msg(alone);
  qspi_wait(arriving[0]);
  check_received(in[0], from, 1000, 7);
  qspi_free_msg(beside);
  for (int m = 0; m < 2; ++m) qspi_free_msg(arriving[m]);
  for (int m = 0; m < 2 * messages; ++m) qspi_free_msg(msgs[m]);
}

/* A message is sent although another one that was prepared with it is not started. Its receiver makes a file. */
static void seen_elsewhere(void) {
  int out[2] = {(int)getpid(), 2};
  int in[2] = {0, 0};
  char file[64];
  qspi_msg_t msgs[2];
  if (all_ranks() < 2 || my_rank() > 1) return;
  for (int m = 0; m < 2; ++m) msgs[m] = my_rank() == 0 ? sending(1, &out[m], 1) : receiving(0, &in[m], 1);
  qspi_prepare(msgs, 2);
  qspi_start(msgs[0]);
  if (my_rank() == 1) qspi_wait(msgs[0]);
  snprintf(file, sizeof file, "/tmp/onehop_test_qspi_%d", my_rank() == 0 ? out[0] : in[0]);
  if (my_rank() == 1) {
    FILE* seen = fopen(file, "w");
    CHECK(seen != NULL);
    fclose(seen);
  } else {
    int tries = 0;
    while (access(file, F_OK) != 0 && ++tries < 5000) usleep(1000);
    CHECK(tries < 5000); /* it arrives though another is not started */
    unlink(file);
  }
  qspi_start(msgs[1]);
  for (int m = 0; m < 2; ++m) {
    if (my_rank() == 0 || m == 1) qspi_wait(msgs[m]);
    qspi_free_msg(msgs[m]);
  }
}

static void sums(void) {
  const int n = all_ranks();
  for (int step = 0; step < steps; ++step) {
    double x = 1.0 / (1 + my_rank() + step);
    double expected = 0;
    for (int i = 0; i < n; ++i) expected += 1.0 / (1 + i + step);
    qspi_sum_double(&x);
    CHECK(x == expected); /* in the order of ranks, to the last bit */
  }
}

int main(int argc, char** argv) {
  qspi_init();
  if (made_error(argc, argv)) return 0;
  seen_elsewhere();
  for (int together = 0; together < 2; ++together) {
    setenv("ONEHOP_QSPI_TOGETHER", together ? "1" : "0", 1);
    ring(0, together);
    ring(1, !together);
    ring(2000, together);
    ring(300000, !together);
    all_pairs();
    pieces();
    prepared_one_by_one();
    many_lengths();
    started_in_part();
    sums();
  }
  qspi_finalize();
  return 0;
}
