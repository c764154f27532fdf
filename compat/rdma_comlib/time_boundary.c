/* Measures how long two ranks in lockstep wait for their boundaries, alternately with this drop-in interface and with
   MPI's persistent requests. Each rank sends two messages to the other and receives two, like QWS in one direction
   (docs/howto/compat_rdma_comlib.md).

     time_boundary BYTES COMPUTING STEPS

   BYTES of a message, µs of work between sending and receiving, and steps of each variant. Times are medians over the
   steps, in µs: of starting both messages, of waiting for both, of reading the received data, and of all three. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/rdma_comlib.h"

enum { directions = 2, parities = 2, alignment = 256, parts = 4, block = 50 };

struct boundary {
  float* out[directions];
  float* in[directions][parities];
  int floats;
  int peer;
};

struct onehop_paths {
  rdma_comlib_data path[directions][parities];
};

struct mpi {
  MPI_Request send[directions];
  MPI_Request receive[directions][parities];
};

static void* buffer(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, alignment, bytes) != 0) abort();
  return memset(memory, 0, bytes);
}

static struct boundary make_boundary(size_t bytes, int peer) {
  struct boundary made = {.floats = (int)(bytes / sizeof(float)), .peer = peer};
  for (int d = 0; d < directions; ++d) {
    made.out[d] = buffer(bytes + sizeof(int));
    for (int p = 0; p < parities; ++p) made.in[d][p] = buffer(bytes + sizeof(int));
  }
  return made;
}

static struct onehop_paths open_paths(const struct boundary* b) {
  const int interface = 0;
  const int external = 1;
  const size_t size = b->floats * sizeof(float);
  struct onehop_paths made;
  for (int d = 0; d < directions; ++d) {
    for (int p = 0; p < parities; ++p) {
      made.path[d][p].sbuff = (volatile int*)b->out[d];
      made.path[d][p].rbuff = (volatile int*)b->in[d][p];
    }
    rdma_comlib_new_ext(&made.path[d][0], &interface, &b->peer, &b->peer, &size, &external);
    rdma_comlib_new_duplicate(&made.path[d][1], &made.path[d][0], &size, &external);
  }
  return made;
}

static struct mpi open_mpi(const struct boundary* b) {
  struct mpi made;
  for (int d = 0; d < directions; ++d) {
    MPI_Send_init(b->out[d], b->floats, MPI_FLOAT, b->peer, d, MPI_COMM_WORLD, &made.send[d]);
    for (int p = 0; p < parities; ++p) {
      MPI_Recv_init(b->in[d][p], b->floats, MPI_FLOAT, b->peer, d, MPI_COMM_WORLD, &made.receive[d][p]);
    }
  }
  return made;
}

static void compute(double us, volatile double* sink) {
  const double until = MPI_Wtime() + us * 1e-6;
  double x = 0;
  while (MPI_Wtime() < until) {
    for (int i = 0; i < 200; ++i) x += i;
  }
  *sink = x;
}

static void dirty(const struct boundary* b, int step) {
  for (int d = 0; d < directions; ++d) {
    for (int i = 0; i < b->floats; ++i) b->out[d][i] = (float)(step % 1000 + d + i % 100);
  }
}

static void read_all(const struct boundary* b, int parity, int step) {
  for (int d = 0; d < directions; ++d) {
    const float* in = b->in[d][parity];
    float wrong = 0;
    for (int i = 0; i < b->floats; ++i) wrong += in[i] != (float)(step % 1000 + d + i % 100);
    if (wrong != 0) {
      fprintf(stderr, "step %d: %g values are wrong\n", step, wrong);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

/* One step; `us` gets the times of its parts. */
static void step(const struct boundary* b, struct onehop_paths* paths, struct mpi* mpi, int number, double computing,
                 double* us) {
  static volatile double sink;
  const int p = number % parities;
  if (mpi != NULL) {
    for (int d = 0; d < directions; ++d) MPI_Start(&mpi->receive[d][p]);
  }
  dirty(b, number);
  const double begin = MPI_Wtime();
  for (int d = 0; d < directions; ++d) {
    if (mpi != NULL) {
      MPI_Start(&mpi->send[d]);
    } else {
      rdma_comlib_isendrecv(&paths->path[d][p]);
    }
  }
  const double started = MPI_Wtime();
  compute(computing, &sink);
  const double computed = MPI_Wtime();
  for (int d = 0; d < directions; ++d) {
    if (mpi != NULL) {
      MPI_Wait(&mpi->receive[d][p], MPI_STATUS_IGNORE);
    } else {
      rdma_comlib_irecv_check(&paths->path[d][p]);
    }
  }
  const double arrived = MPI_Wtime();
  read_all(b, p, number);
  const double end = MPI_Wtime();
  for (int d = 0; d < directions; ++d) {
    if (mpi != NULL) {
      MPI_Wait(&mpi->send[d], MPI_STATUS_IGNORE);
    } else {
      rdma_comlib_isend_check(&paths->path[d][p]);
      rdma_comlib_irecv_ok(&paths->path[d][p]);
    }
  }
  us[0] = (started - begin) * 1e6;
  us[1] = (arrived - computed) * 1e6;
  us[2] = (end - arrived) * 1e6;
  us[3] = us[0] + us[1] + us[2];
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* all, int steps, int part, double* room) {
  for (int i = 0; i < steps; ++i) room[i] = all[parts * i + part];
  qsort(room, steps, sizeof *room, ascending);
  return room[steps / 2];
}

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) / sizeof(float) * sizeof(float) : 18428;
  const double computing = argc > 2 ? atof(argv[2]) : 40;
  const int steps = (argc > 3 ? atoi(argv[3]) : 10000) / block * block;
  int rank;
  int ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2 || steps < block) {
    if (rank == 0) fprintf(stderr, "expected 2 ranks and at least %d steps, found %d and %d\n", block, ranks, steps);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const struct boundary of_paths = make_boundary(bytes, 1 - rank);
  const struct boundary of_mpi = make_boundary(bytes, 1 - rank);
  rdma_comlib_init();
  struct onehop_paths paths = open_paths(&of_paths);
  struct mpi mpi = open_mpi(&of_mpi);
  double* us[2] = {malloc(steps * parts * sizeof(double)), malloc(steps * parts * sizeof(double))};
  for (int first = 0; first < steps; first += block) {
    for (int way = 0; way < 2; ++way) {
      MPI_Barrier(MPI_COMM_WORLD);
      for (int i = first; i < first + block; ++i) {
        step(way == 0 ? &of_paths : &of_mpi, &paths, way == 0 ? NULL : &mpi, i, computing, us[way] + parts * i);
      }
    }
  }
  double* room = malloc(steps * sizeof(double));
  for (int who = 0; who < ranks; ++who) {
    for (int way = 0; who == rank && way < 2; ++way) {
      printf("rank %d, %s: start %.2f, wait %.2f, read %.2f, all %.2f us\n", rank, way == 0 ? "onehop" : "MPI   ",
             median(us[way], steps, 0, room), median(us[way], steps, 1, room), median(us[way], steps, 2, room),
             median(us[way], steps, 3, room));
      fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  const int external = 1;
  for (int d = 0; d < directions; ++d) {
    for (int p = 0; p < parities; ++p) rdma_comlib_delete_ext(&paths.path[d][p], &external);
  }
  rdma_comlib_finalize();
  MPI_Finalize();
  return 0;
}
