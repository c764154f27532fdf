/* The interface of `qspi`, the communication library for lattice QCD on Blue Gene/Q, on onehop (docs/howto/compat_qspi.md).

   A message is made, told where it goes or comes from, prepared together with the rank at its other end, and then started and
   waited for as often as one likes. For one thread at a time. Misuse, and a peer that is lost, end the program with a message
   on stderr. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qspi_message* qspi_msg_t;

/* May be called before MPI_Init; the ranks meet in the first qspi_prepare or qspi_sum_double. */
void qspi_init(void);
void qspi_finalize(void);

qspi_msg_t qspi_create_msg(void);
void qspi_free_msg(qspi_msg_t msg);

/* What a message is: `size` bytes at `buf`, to or from a rank. */
void qspi_set_send(int dest, void* buf, size_t size, qspi_msg_t send_msg);
void qspi_set_recv(int src, void* buf, size_t size, qspi_msg_t recv_msg);
/* Several pieces that are received as one message. */
void qspi_set_send_multi(int dest, void* buf[], size_t size[], int n_msg, qspi_msg_t send_msg);

/* Makes messages ready, together with the ranks at their other ends: the n-th message that a rank prepares to send to another
   belongs to the n-th that the other prepares to receive from it, and has as many bytes. With ONEHOP_QSPI_TOGETHER=1 in the
   environment the program says that it starts all messages of this call before it waits for anything, here or elsewhere: those to
   the same rank then go in one piece when the last is started. */
void qspi_prepare(qspi_msg_t msgs[], int num);

void qspi_start(qspi_msg_t msg);
/* After it the buffer of a sent message may be written again, and that of a received one holds what was sent. A message to receive
   need not have been started. */
void qspi_wait(qspi_msg_t msg);

/* The sum of everybody's *x, the same on all ranks. Collective. */
void qspi_sum_double(double* x);

#ifdef __cplusplus
}
#endif
