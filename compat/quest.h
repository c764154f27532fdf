/* The network functions behind the drop-in replacement of QuEST's communication layer (docs/howto/compat_quest.md):
   messages of bytes between ranks, and a few collective operations. The layer itself, with QuEST's own types, is
   compat/quest/comm.cpp, which is compiled inside QuEST.

   One thread at a time may call these functions. All but onehop_quest_is_open and onehop_quest_open need an open
   connection. Misuse and the loss of a peer end the program with a message on stderr. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1 once onehop_quest_open has been called, even after onehop_quest_close; otherwise 0. */
int onehop_quest_is_open(void);
/* Connects the ranks. Collective; may be called once. */
void onehop_quest_open(void);
/* Waits for all ranks and closes the connection. Collective. */
void onehop_quest_close(void);

int onehop_quest_rank(void);
int onehop_quest_ranks(void);

/* Waits until the memory of all messages that this rank has sent may be reused. */
void onehop_quest_flush(void);
/* The same on all ranks, followed by a barrier. Collective. */
void onehop_quest_sync(void);

/* Exchanges `bytes` bytes with another rank, which must call it too. The two buffers must not overlap. */
void onehop_quest_exchange(const void* send, void* receive, size_t bytes, int rank);

/* One-way messages. The memory at `send` must not change before the next onehop_quest_flush or onehop_quest_sync. */
void onehop_quest_send(const void* send, size_t bytes, int rank);
void onehop_quest_receive(void* receive, size_t bytes, int rank);

/* All-gather: rank r contributes bytes[r] bytes of `all` at offset begins[r]; every rank gets all. Collective. */
void onehop_quest_combine(void* all, const size_t begins[], const size_t bytes[]);
void onehop_quest_broadcast(void* data, size_t bytes, int root);
/* Gathers `bytes` bytes from each rank, in rank order, into `all` on rank 0; others' `all` is ignored. Collective. */
void onehop_quest_gather_to_root(const void* mine, size_t bytes, void* all);

/* Sum `count` values over all ranks, element by element in rank order: the same bits on every rank. Collective. */
void onehop_quest_sum_floats(float* values, size_t count);
void onehop_quest_sum_doubles(double* values, size_t count);
void onehop_quest_sum_long_doubles(long double* values, size_t count);

#ifdef __cplusplus
}
#endif
