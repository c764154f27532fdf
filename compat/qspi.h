/* The drop-in interface for `qspi`, the communication library for lattice QCD on Blue Gene/Q
   (docs/howto/compat_qspi.md).

   A program creates a message, sets its peer and its buffer, prepares it together with the peer, and then starts it and
   waits for it any number of times. One thread at a time may call these functions. Misuse and the loss of a peer end
   the program with a message on stderr. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qspi_message* qspi_msg_t;

/* May be called before MPI_Init: the ranks connect in the first qspi_prepare or qspi_sum_double. After qspi_finalize it
   begins again, and all messages must be prepared again. */
void qspi_init(void);
void qspi_finalize(void);

qspi_msg_t qspi_create_msg(void);
void qspi_free_msg(qspi_msg_t msg);

/* Sets a message: `size` bytes at `buf`, to or from a rank. */
void qspi_set_send(int dest, void* buf, size_t size, qspi_msg_t send_msg);
void qspi_set_recv(int src, void* buf, size_t size, qspi_msg_t recv_msg);
/* Sets a message made of `n_msg` pieces, which the receiver gets as one message. */
void qspi_set_send_multi(int dest, void* buf[], size_t size[], int n_msg, qspi_msg_t send_msg);

/* Prepares messages together with their peers. The n-th message that a rank prepares to send to a peer is matched with
   the n-th message that the peer prepares to receive from it; both must have the same number of bytes.
   ONEHOP_QSPI_TOGETHER=1 in the environment promises that the program starts all messages of this call before it waits
   for anything, here or elsewhere. Messages to the same rank then leave together when the last of them is started. */
void qspi_prepare(qspi_msg_t msgs[], int num);

void qspi_start(qspi_msg_t msg);
/* Waits for a message. Afterwards the buffer of a sent message may be overwritten, and the buffer of a received message
   holds its data. A receive that was not started is started here, unless qspi_start has started it earlier: then the
   program starts it each time, and a second wait is an error. */
void qspi_wait(qspi_msg_t msg);

/* Replaces *x by its sum over all ranks, which is identical on all of them. Collective. */
void qspi_sum_double(double* x);

#ifdef __cplusplus
}
#endif
