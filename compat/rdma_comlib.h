/* The interface of QWS's communication library `rdma_comlib` and of its `rankmap_lib`, on onehop (docs/howto/compat_rdma_comlib.md).
   Programs that have headers of their own for it, as QWS has, are compiled with those: the layout below is the same.

   One rdma_comlib_data is one path: the bytes in `sbuff` go to one rank, and what another rank sent comes to `rbuff`. Both
   buffers hold `size` bytes and one int more, a counter that the library changes with every message. Making a path is collective:
   all ranks make their paths in the same order. Different paths may be used by different threads at once, one path by one.
   Misuse, and a peer that is lost, end the program with a message on stderr. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  volatile int* sbuff; /* what is sent; the caller's where has_external is not 0 */
  volatile int* rbuff; /* what has come, after rdma_comlib_irecv_check */
  size_t length;       /* bytes of a message */
  size_t data_size;    /* the same with the counter */
  size_t data_len_int; /* the same as a number of ints */
  uint64_t mark;       /* tells an open path from memory that never was one */
  void* path;
  char reserved[88]; /* up to the size that programs give it */
} rdma_comlib_data;

void rdma_comlib_init(void); /* collective */
void rdma_comlib_finalize(void);

/* Opens a path of messages of *size bytes, a multiple of 4. *tni_id, 0 to 5, has no meaning here. With *has_external == 0 the
   buffers are allocated here, otherwise they are the caller's, who frees them after rdma_comlib_delete_ext. Collective. */
void rdma_comlib_new_ext(rdma_comlib_data* id, const int* tni_id, const int* dst_rank, const int* rcv_rank,
                         const size_t* size, const int* has_external);
void rdma_comlib_new(rdma_comlib_data* id, const int* tni_id, const int* dst_rank, const int* rcv_rank,
                     const size_t* size);
/* Another path between the same ranks as `original`, for double buffering: it may have the same sbuff. Collective. */
void rdma_comlib_new_duplicate(rdma_comlib_data* id, const rdma_comlib_data* original, const size_t* size,
                               const int* has_external);
void rdma_comlib_delete_ext(rdma_comlib_data* id, const int* has_external);
void rdma_comlib_delete(rdma_comlib_data* id);

/* Sends what is in sbuff. Waits only where the receiver is not done with the last message of this path: two ranks that both send
   twice on a path before either calls irecv_check may wait for each other. (On Fugaku the second message would overwrite the first.) */
void rdma_comlib_isendrecv(rdma_comlib_data* id);
void rdma_comlib_isend_check(rdma_comlib_data* id); /* afterwards sbuff may be written again */
void rdma_comlib_irecv_check(rdma_comlib_data* id); /* waits for the next message; afterwards it is in rbuff */
/* This rank is done with rbuff, which may change from now on. The next isendrecv or irecv_check of the path says so too. */
void rdma_comlib_irecv_ok(rdma_comlib_data* id);
void rdma_comlib_clear_mrq(rdma_comlib_data* id);
void rdma_comlib_swap_vcq_for_sending(rdma_comlib_data* id1, rdma_comlib_data* id2);
int rdma_comlib_get_ssize(const rdma_comlib_data* id); /* bytes of a message */

/* A map of ranks to a Tofu network: there is none (-1), and programs use their own order. */
int rankmap_lib_set_rankmap2d(void);
int rankmap_lib_set_rankmap4d(void);
int rankmap_lib_get_rankmap(int* coordinates, int* neighbours, int* sizes);
/* Network interfaces for the directions +x, -x, +y, ...: 8 numbers from 0 to 5, or 4 after rankmap_lib_set_rankmap2d. */
int rankmap_lib_get_tni_list(int* tni_list, const int* flag);

#ifdef __cplusplus
}
#endif
