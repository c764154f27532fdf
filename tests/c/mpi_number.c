/* Initialises MPI for test_onehop.f90 and returns the numbers of two communicators: not every MPI has a Fortran module.
 */
#include <mpi.h>

int start_mpi(int* null) {
  MPI_Init(0, 0);
  *null = MPI_Comm_c2f(MPI_COMM_NULL);
  return MPI_Comm_c2f(MPI_COMM_WORLD);
}

void end_mpi(void) { MPI_Finalize(); }
