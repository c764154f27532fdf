/* What QuEST's communication layer asks of a network, on onehop (docs/howto/compat_quest.md): bytes between ranks, and a few collective
   operations. The layer itself, with QuEST's own types, is compat/quest/comm.cpp, which is compiled inside QuEST.

   For one thread at a time. Everything but quest_door_is_open and quest_door_open needs an open door. Misuse, and a peer that is
   lost, end the program with a message on stderr. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

int quest_door_is_open(void); /* also after quest_door_close */
void quest_door_open(void);   /* the ranks meet; collective */
void quest_door_close(void);  /* collective */

int quest_door_rank(void);
int quest_door_ranks(void);

/* Waits until everything that this rank sent has left. */
void quest_door_flush(void);
/* The same, and for all ranks. Collective. */
void quest_door_sync(void);

/* `bytes` bytes each way between this rank and another, which calls it too. The memories must not overlap. */
void quest_door_exchange(const void* send, void* receive, size_t bytes, int rank);

/* One way. The memory that is sent must not change before the next quest_door_flush or quest_door_sync. */
void quest_door_send(const void* send, size_t bytes, int rank);
void quest_door_receive(void* receive, size_t bytes, int rank);

/* Collective. Piece r of `all` begins at begins[r], has bytes[r] bytes and is rank r's: afterwards everybody has all pieces. */
void quest_door_combine(void* all, const size_t begins[], const size_t bytes[]);
void quest_door_broadcast(void* data, size_t bytes, int root);
/* Everybody's `bytes` bytes, in the order of ranks, in `all` of rank 0; `all` of the others is not looked at. */
void quest_door_gather_to_root(const void* mine, size_t bytes, void* all);

/* The sums over all ranks, added in the order of ranks: the same bits on every rank and in every run. Collective. */
void quest_door_sum_floats(float* values, size_t count);
void quest_door_sum_doubles(double* values, size_t count);
void quest_door_sum_long_doubles(long double* values, size_t count);

#ifdef __cplusplus
}
#endif
