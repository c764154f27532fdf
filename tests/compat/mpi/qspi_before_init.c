/* A program that is linked with MPI and calls qspi_init before MPI_Init: both work together under MPI's launcher. */
#include <mpi.h>
#include <stdio.h>

#include "qspi.h"

enum { steps = 20, ints = 3000 };

int main(int argc, char** argv) {
  static int out[ints];
  static int in[ints];
  int rank;
  int ranks;
  int wrong = 0;
  int wrong_anywhere;
  qspi_init();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int to = (rank + 1) % ranks;
  const int from = (rank + ranks - 1) % ranks;
  qspi_msg_t msgs[2] = {qspi_create_msg(), qspi_create_msg()};
  qspi_set_recv(from, in, sizeof in, msgs[0]);
  qspi_set_send(to, out, sizeof out, msgs[1]);
  qspi_prepare(msgs, 2);
  for (int step = 0; step < steps; ++step) {
    int expected = -1;
    for (int i = 0; i < ints; ++i) out[i] = (rank * steps + step) * ints + i;
    for (int i = 0; i < 2; ++i) qspi_start(msgs[i]);
    for (int i = 0; i < 2; ++i) qspi_wait(msgs[i]);
    /* The neighbour's value, received over MPI. */
    MPI_Sendrecv(&out[0], 1, MPI_INT, to, 0, &expected, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < ints; ++i) wrong += in[i] != expected + i || in[i] != (from * steps + step) * ints + i;
  }
  double sum = rank;
  qspi_sum_double(&sum);
  wrong += sum != ranks * (ranks - 1) / 2;
  for (int i = 0; i < 2; ++i) qspi_free_msg(msgs[i]);
  MPI_Allreduce(&wrong, &wrong_anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (wrong != 0) fprintf(stderr, "rank %d of %d: %d values are wrong\n", rank, ranks, wrong);
  qspi_finalize();
  MPI_Finalize();
  return wrong_anywhere == 0 && ranks == 2 ? 0 : 1;
}
