/* The drop-in interface for QWS's communication library `rdma_comlib` and its `rankmap_lib`
   (docs/howto/compat_rdma_comlib.md). Programs with headers of their own for it, such as QWS, are compiled with those:
   the layout below is the same.

   An rdma_comlib_data is a path. It sends the bytes in `sbuff` to one rank and receives the bytes that another rank
   sent into `rbuff`. Both buffers hold `size` bytes and one more int, a counter that the library changes with every
   message. While a path is open, a program may read and copy the struct, but not change it. Opening a path is
   collective: all ranks open their paths in the same order. Different threads may use different paths at the same time,
   but one path is for one thread at a time. Misuse and the loss of a peer end the program with a message on stderr. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  volatile int* sbuff; /* the data to send; allocated by the caller if has_external is not 0 */
  volatile int* rbuff; /* the data received, valid after rdma_comlib_irecv_check; allocated like sbuff */
  size_t length;       /* bytes of a message */
  size_t data_size;    /* the same with the counter */
  size_t data_len_int; /* the same as a number of ints */
  uint64_t mark;       /* distinguishes an open path from other memory */
  void* path;
  char reserved[88]; /* pads the struct to the size that programs reserve */
} rdma_comlib_data;

void rdma_comlib_init(void); /* collective */
void rdma_comlib_finalize(void);

/* Opens a path for messages of *size bytes, a multiple of 4. *tni_id, from 0 to 5, has no effect. If *has_external is 0
   the buffers are allocated here; otherwise the caller provides them and frees them after rdma_comlib_delete_ext.
   Collective. */
void rdma_comlib_new_ext(rdma_comlib_data* id, const int* tni_id, const int* dst_rank, const int* rcv_rank,
                         const size_t* size, const int* has_external);
void rdma_comlib_new(rdma_comlib_data* id, const int* tni_id, const int* dst_rank, const int* rcv_rank,
                     const size_t* size);
/* Opens another path between the same ranks as `original`, for double buffering. It may share sbuff. Collective. */
void rdma_comlib_new_duplicate(rdma_comlib_data* id, const rdma_comlib_data* original, const size_t* size,
                               const int* has_external);
void rdma_comlib_delete_ext(rdma_comlib_data* id, const int* has_external);
void rdma_comlib_delete(rdma_comlib_data* id);

/* Sends the data in sbuff. Waits only while the receiver still uses the last message of this path. Two ranks that both
   send twice on a path before either calls irecv_check may wait for each other. (On Fugaku the second message would
   overwrite the first.) */
void rdma_comlib_isendrecv(rdma_comlib_data* id);
void rdma_comlib_isend_check(rdma_comlib_data* id); /* afterwards sbuff may be overwritten */
void rdma_comlib_irecv_check(rdma_comlib_data* id); /* waits for the next message and stores it in rbuff */
/* Releases rbuff, which may change from now on. The next isendrecv or irecv_check of the path does the same. */
void rdma_comlib_irecv_ok(rdma_comlib_data* id);
void rdma_comlib_clear_mrq(rdma_comlib_data* id);
void rdma_comlib_swap_vcq_for_sending(rdma_comlib_data* id1, rdma_comlib_data* id2);
int rdma_comlib_get_ssize(const rdma_comlib_data* id); /* bytes of a message */

/* A map of ranks to a Tofu network. There is none: these return -1, and programs use their own order. */
int rankmap_lib_set_rankmap2d(void);
int rankmap_lib_set_rankmap4d(void);
int rankmap_lib_get_rankmap(int* coordinates, int* neighbours, int* sizes);
/* Network interfaces for directions +x, -x, +y, ...: 8 numbers from 0 to 5, or 4 after rankmap_lib_set_rankmap2d. They
   are balanced for messages of one size: no interface of the host gets two messages more than another. The ranks of the
   host are known after rdma_comlib_init; before, only this rank is. */
int rankmap_lib_get_tni_list(int* tni_list, const int* flag);
/* The same for messages of different sizes. sizes[i] are the bytes that each rank of the host sends in direction i, the
   same on all of them; 0 for a direction that sends nothing. The busiest interface of the host gets the fewest bytes
   that are possible. QWS's own library does not have this function. */
int rankmap_lib_get_balanced_tni_list(int* tni_list, const size_t* sizes);

#ifdef __cplusplus
}
#endif
