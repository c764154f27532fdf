/* The C interface for programs that use MPI themselves. */
#ifndef ONEHOP_MPI_H
#define ONEHOP_MPI_H

#include <mpi.h>
#include <onehop.h>

/* Collective over `comm`, which is duplicated. MPI must be initialised. */
static inline int onehop_group_from_mpi(MPI_Comm comm, onehop_group** group) {
  return onehop_group_from_mpi_handle(&comm, group);
}

#endif
