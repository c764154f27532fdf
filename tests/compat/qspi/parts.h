/* The parts of qspi's test. */
#pragma once

#include "compat/qspi.h"

/* Messages of `ints` ints that are set, but not prepared. */
static inline qspi_msg_t sending(int to, int* buffer, int ints) {
  const qspi_msg_t msg = qspi_create_msg();
  qspi_set_send(to, buffer, ints * sizeof(int), msg);
  return msg;
}

static inline qspi_msg_t receiving(int from, int* buffer, int ints) {
  const qspi_msg_t msg = qspi_create_msg();
  qspi_set_recv(from, buffer, ints * sizeof(int), msg);
  return msg;
}
