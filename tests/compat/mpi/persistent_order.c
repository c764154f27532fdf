/* Why no drop-in interface intercepts MPI (docs/howto/compat.md, "What is not here"): rank 0's persistent send and rank
   1's persistent receive have the same communicator, tag and type and are under way at once, and yet do not belong to
   each other. MPI gives 1 to `a` and 2 to `b`; a library that carried persistent requests by a channel of their own
   would give 1 to `b`. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Request request;
  MPI_Request other;
  int rank;
  int a = 0;
  int b = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    int one = 1;
    int two = 2;
    MPI_Send_init(&one, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Send(&two, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  } else if (rank == 1) {
    MPI_Recv_init(&b, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    PMPI_Irecv(&a, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &other); /* past every interceptor */
    MPI_Start(&request);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    if (a != 1 || b != 2) fprintf(stderr, "expected 1 and 2, found %d and %d\n", a, b);
  }
  MPI_Finalize();
  return rank != 1 || (a == 1 && b == 2) ? 0 : 1;
}
