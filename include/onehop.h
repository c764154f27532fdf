/* The C interface of onehop. Link with onehop::onehop_c (CMake) or -lonehop_c. The Fortran module `onehop` (onehop.f90)
 * has the same functions. docs/howto/c_and_fortran.md shows programs.
 *
 * Every function returns ONEHOP_SUCCESS or the code of an error, whose text onehop_error_message() returns, except
 * where its comment says what it returns. No error ends the program. Handles are opaque: the library recognises a null
 * pointer, a handle that was freed and one of another kind. A function that makes a handle writes it to its last
 * argument; the function ..._free releases it and sets it to null. Numbers and functions of one
 * ONEHOP_INTERFACE_VERSION keep their meaning; later versions only add to them.
 *
 * Functions of a group, and of plans and requests made with it, are for one thread at a time. Those marked "collective"
 * are called by all ranks of the group in the same order. */
#ifndef ONEHOP_H
#define ONEHOP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(ONEHOP_BUILDS_C)
#define ONEHOP_API __attribute__((visibility("default")))
#else
#define ONEHOP_API
#endif

#define ONEHOP_INTERFACE_VERSION 1
/* Returns the ONEHOP_INTERFACE_VERSION of the library, and its version, "0.2.0". */
ONEHOP_API int onehop_interface_version(void);
ONEHOP_API const char* onehop_version(void);

enum {
  ONEHOP_SUCCESS = 0,
  ONEHOP_ERROR = 1,
  ONEHOP_BAD_INPUT = 2, /* wrong arguments on this rank; nothing was sent */
  ONEHOP_PEER_LOST = 3, /* a rank has ended or left */
  ONEHOP_MISMATCH = 4,  /* the calls of two ranks differ; on every rank */
  ONEHOP_TIMEOUT = 5
};
/* Returns the text of the last error of the calling thread: what was expected, what was found. It is valid until the
 * thread's next error. */
ONEHOP_API const char* onehop_error_message(void);
/* For interfaces in other languages: returns ONEHOP_BAD_INPUT unless the numbers are equal. */
ONEHOP_API int onehop_check_length(int64_t expected, int64_t found);

/* Types of numbers. Complex numbers are a real and an imaginary part. */
enum {
  ONEHOP_INT8 = 0,
  ONEHOP_INT16 = 1,
  ONEHOP_INT32 = 2,
  ONEHOP_INT64 = 3,
  ONEHOP_UINT8 = 4,
  ONEHOP_UINT16 = 5,
  ONEHOP_UINT32 = 6,
  ONEHOP_UINT64 = 7,
  ONEHOP_FLOAT = 8,
  ONEHOP_DOUBLE = 9,
  ONEHOP_FLOAT_COMPLEX = 10,
  ONEHOP_DOUBLE_COMPLEX = 11
};

/* Operators, applied in the order of ranks. Integers wrap around, logical operators give 0 or 1, and a NaN of any rank
 * gives a NaN. Complex numbers have no minimum, maximum and bitwise operators, floating-point numbers no bitwise ones,
 * and integers no mean. */
enum {
  ONEHOP_SUM = 0,
  ONEHOP_PROD = 1,
  ONEHOP_MIN = 2,
  ONEHOP_MAX = 3,
  ONEHOP_LOGICAL_AND = 4,
  ONEHOP_LOGICAL_OR = 5,
  ONEHOP_LOGICAL_XOR = 6,
  ONEHOP_BITWISE_AND = 7,
  ONEHOP_BITWISE_OR = 8,
  ONEHOP_BITWISE_XOR = 9,
  ONEHOP_MEAN = 10
};

typedef struct onehop_group onehop_group;
typedef struct onehop_halo onehop_halo;
typedef struct onehop_schedule onehop_schedule;
typedef struct onehop_plan onehop_plan;
typedef struct onehop_request onehop_request;

/* Groups. The world is all ranks that the launcher started (`onehop launch`, mpiexec, srun, torchrun), or one rank
 * without a launcher; the first call is collective. A free is not. Plans and requests keep the group of their making.
 */
ONEHOP_API int onehop_group_world(onehop_group** group);
ONEHOP_API int onehop_group_alone(onehop_group** group);
/* Collective over the communicator, which is duplicated. `comm` points to an MPI_Comm; onehop_mpi.h has a typed
 * function. `number` is the communicator of a Fortran program (MPI_Fint). */
ONEHOP_API int onehop_group_from_mpi_handle(const void* comm, onehop_group** group);
ONEHOP_API int onehop_group_from_mpi_fint(int number, onehop_group** group);
/* Collective. Ranks with the same color form a new group, ordered by (key, rank); a negative color gives null. */
ONEHOP_API int onehop_group_split(onehop_group* group, int color, int key, onehop_group** part);
ONEHOP_API int onehop_group_rank(onehop_group* group, int* rank);
ONEHOP_API int onehop_group_size(onehop_group* group, int* size);
ONEHOP_API int onehop_group_barrier(onehop_group* group); /* collective */
/* The limit of every wait in this group in seconds; 0: none. */
ONEHOP_API int onehop_group_set_timeout(onehop_group* group, double seconds);
ONEHOP_API int onehop_group_free(onehop_group** group);

/* Schedules: who sends what to whom, as data. No function communicates. `only_rank` restricts a schedule to the part of
 * one rank, which is enough for its plan; -1: all ranks.
 *
 * A halo is the exchange of ghost layers of an array of 1 to 6 dimensions that is split over a grid of ranks, the last
 * dimension running fastest in memory and in the number of the rank. At first: one ghost layer at each side, no
 * periodic dimension, no corners, one field of 8 bytes per site. */
ONEHOP_API int onehop_halo_new(int dims, const int64_t* extents, const int* grid, onehop_halo** halo);
/* Layers below and above, for each dimension. */
ONEHOP_API int onehop_halo_set_widths(onehop_halo* halo, const int64_t* below, const int64_t* above);
ONEHOP_API int onehop_halo_set_periodic(onehop_halo* halo, const int* periodic);
ONEHOP_API int onehop_halo_set_corners(onehop_halo* halo, int corners);
ONEHOP_API int onehop_halo_set_fields(onehop_halo* halo, int fields, const int64_t* element_bytes);
/* The block of a rank, for each dimension: its first site, its sites, and those of its array with ghosts. Each may be
 * null. */
ONEHOP_API int onehop_halo_block(onehop_halo* halo, int rank, int64_t* start, int64_t* extents, int64_t* shape);
ONEHOP_API int onehop_halo_schedule(onehop_halo* halo, int only_rank, onehop_schedule** schedule);
ONEHOP_API int onehop_halo_free(onehop_halo** halo);

/* Bit i of the index of 2^bits elements goes to bit permutation[i]; the lower `local_bits` number an element on its
 * rank, the others the rank. In place in array 0. */
ONEHOP_API int onehop_schedule_permute_bits(int bits, int local_bits, const int* permutation, int64_t element_bytes,
                                            int only_rank, onehop_schedule** schedule);
/* Block r of array 0 goes from rank r to the same place of all others; all of array 0 goes from the root to all. */
ONEHOP_API int onehop_schedule_allgather(int ranks, int64_t elements, int64_t element_bytes, int only_rank,
                                         onehop_schedule** schedule);
ONEHOP_API int onehop_schedule_broadcast(int ranks, int64_t elements, int64_t element_bytes, int root, int only_rank,
                                         onehop_schedule** schedule);
/* Array 0 of all ranks is combined into array 1. Types: int32, int64, float, double; operators: sum, prod, min, max.
 * A reduce-scatter has `elements` elements for each rank. */
ONEHOP_API int onehop_schedule_allreduce(int ranks, int64_t elements, int type, int op, int only_rank,
                                         onehop_schedule** schedule);
ONEHOP_API int onehop_schedule_reduce_scatter(int ranks, int64_t elements, int type, int op, int only_rank,
                                              onehop_schedule** schedule);
/* Any schedule, such as one of Python's patterns; docs/reference/schedule.md describes the text. */
ONEHOP_API int onehop_schedule_from_json(const char* text, onehop_schedule** schedule);
/* The bytes of an array of a rank, and those that a rank sends in a run. */
ONEHOP_API int onehop_schedule_array_bytes(onehop_schedule* schedule, int array, int rank, int64_t* bytes);
ONEHOP_API int onehop_schedule_bytes_sent(onehop_schedule* schedule, int rank, int64_t* bytes);
ONEHOP_API int onehop_schedule_free(onehop_schedule** schedule);

/* A plan is a schedule bound to memory: arrays[i] of bytes[i] bytes is array i. Making it is collective; the arrays
 * must outlive it. Between start and finish, do not touch what is sent or received. */
ONEHOP_API int onehop_plan_new(onehop_group* group, onehop_schedule* schedule, int count, void* const* arrays,
                               const int64_t* bytes, onehop_plan** plan);
ONEHOP_API int onehop_plan_start(onehop_plan* plan);
ONEHOP_API int onehop_plan_test(onehop_plan* plan, int* complete);
ONEHOP_API int onehop_plan_finish(onehop_plan* plan);
ONEHOP_API int onehop_plan_run(onehop_plan* plan);
ONEHOP_API int onehop_plan_free(onehop_plan** plan);

/* Collective operations on arrays. `count` is a number of elements; `counts` has one for each rank, and null stands for
 * `count` of each. Source and result of a reduction or scan may be the same memory. */
ONEHOP_API int onehop_allreduce(onehop_group* group, const void* source, void* result, int64_t count, int type, int op);
ONEHOP_API int onehop_reduce(onehop_group* group, const void* source, void* result, int64_t count, int type, int op,
                             int root);
/* The combination of the ranks up to this one, and of those before it. */
ONEHOP_API int onehop_scan(onehop_group* group, const void* source, void* result, int64_t count, int type, int op);
ONEHOP_API int onehop_exscan(onehop_group* group, const void* source, void* result, int64_t count, int type, int op);
/* Rank r gets block r of the combination, of counts[r] elements. */
ONEHOP_API int onehop_reduce_scatter(onehop_group* group, const void* source, void* result, int64_t count,
                                     const int64_t* counts, int type, int op);
ONEHOP_API int onehop_broadcast(onehop_group* group, void* array, int64_t count, int type, int root);
/* This rank contributes counts[rank] elements. */
ONEHOP_API int onehop_allgather(onehop_group* group, const void* source, void* result, int64_t count,
                                const int64_t* counts, int type);
/* `count` is that of this rank; `counts` and the array of all ranks are for the root alone. */
ONEHOP_API int onehop_gather(onehop_group* group, const void* source, int64_t count, void* result,
                             const int64_t* counts, int type, int root);
ONEHOP_API int onehop_scatter(onehop_group* group, const void* source, const int64_t* counts, void* result,
                              int64_t count, int type, int root);
/* Block r, of sent[r] elements, goes to rank r, and block r of the result, of received[r], comes from rank r. */
ONEHOP_API int onehop_alltoall(onehop_group* group, const void* source, const int64_t* sent, void* result,
                               const int64_t* received, int64_t count, int type);

/* Messages with tags, from 0 on. The first of a group is collective: every rank calls one of these three functions.
 * Messages move while their ranks are in them, or in onehop_wait and onehop_test. */
#define ONEHOP_ANY_RANK (-1)
ONEHOP_API int onehop_send(onehop_group* group, const void* array, int64_t count, int type, int to, int64_t tag);
/* Do not change the array until the request is done. */
ONEHOP_API int onehop_isend(onehop_group* group, const void* array, int64_t count, int type, int to, int64_t tag,
                            onehop_request** request);
/* `sender` may be null. A message of another length is ONEHOP_MISMATCH, and is dropped. */
ONEHOP_API int onehop_receive(onehop_group* group, void* array, int64_t count, int type, int source, int64_t tag,
                              int* sender);
/* Waits, frees the request and sets it to null; onehop_test does so if it is done. */
ONEHOP_API int onehop_wait(onehop_request** request);
ONEHOP_API int onehop_test(onehop_request** request, int* done);

#ifdef __cplusplus
}
#endif

#endif
