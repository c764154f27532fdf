/* Messages of every kind, whose values identify the sender, the receiver and the time. */
#include <unistd.h>

#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

enum { steps = 12, max_ranks = 8 };

static void fill(int* buffer, int to, int step, int ints) {
  for (int i = 0; i < ints; ++i) buffer[i] = pattern(my_rank(), to, step, i);
}

static void check_received(const int* buffer, int from, int step, int ints) {
  for (int i = 0; i < ints; ++i) CHECK(buffer[i] == pattern(from, my_rank(), step, i));
}

static int neighbour(int axis, int direction) {
  int coords[4];
  const int* sizes = QMP_get_logical_dimensions();
  memcpy(coords, QMP_get_logical_coordinates(), sizeof coords);
  coords[axis] = (coords[axis] + direction + sizes[axis]) % sizes[axis];
  return QMP_get_node_number_from(coords);
}

/* Both neighbours along an axis at once, as one multiple message in memory allocated by QMP. */
void halo(int axis, int ints) {
  QMP_mem_t* memory = QMP_allocate_memory(4 * ints * sizeof(int));
  int* buffer = QMP_get_memory_pointer(memory);
  CHECK((uintptr_t)buffer % QMP_ALIGN_DEFAULT == 0);
  int* out[2] = {buffer, buffer + ints};
  int* in[2] = {buffer + 2 * ints, buffer + 3 * ints};
  QMP_msgmem_t mem[4];
  QMP_msghandle_t handle[4];
  int to[2];
  for (int d = 0; d < 2; ++d) {
    const int direction = d == 0 ? 1 : -1;
    to[d] = neighbour(axis, direction);
    mem[d] = QMP_declare_msgmem(out[d], ints * sizeof(int));
    mem[2 + d] = QMP_declare_msgmem(in[d], ints * sizeof(int));
    handle[d] = QMP_declare_receive_relative(mem[2 + d], axis, direction, 0);
    handle[2 + d] = QMP_declare_send_relative(mem[d], axis, direction, 0);
  }
  QMP_msghandle_t all = axis % 2 == 0 ? QMP_declare_multiple(handle, 4) : QMP_declare_send_recv_pairs(handle, 4);
  CHECK(QMP_clear_to_send(all, QMP_CTS_DISABLED) == QMP_SUCCESS);
  for (int step = 0; step < steps; ++step) {
    for (int d = 0; d < 2; ++d) fill(out[d], to[d] + 100 * d, step, ints);
    CHECK(QMP_start(all) == QMP_SUCCESS);
    if (step % 2 == 0) {
      while (!QMP_is_complete(all)) usleep(1);
    }
    CHECK(QMP_wait(all) == QMP_SUCCESS && QMP_is_complete(all));
    for (int d = 0; d < 2; ++d) {
      /* A message from above was sent downwards. */
      for (int i = 0; i < ints; ++i) CHECK(in[d][i] == pattern(to[d], my_rank() + 100 * (1 - d), step, i));
    }
  }
  QMP_free_msghandle(all);
  for (int i = 0; i < 4; ++i) QMP_free_msgmem(mem[i]);
  QMP_free_memory(memory);
}

/* All pairs of nodes, each node itself included, by number, in messages of different length whose addresses change. */
void all_pairs(void) {
  const int n = all_ranks();
  static int out[2][max_ranks][3000];
  static int in[2][max_ranks][3000];
  QMP_msghandle_t handle[2 * max_ranks];
  QMP_msgmem_t mem[2 * max_ranks];
  QMP_comm_t comm = QMP_comm_get_default();
  for (int i = 0; i < n; ++i) {
    const int ints = 1 + 700 * ((my_rank() + i) % 4);
    mem[2 * i] = QMP_declare_msgmem(in[0][i], ints * sizeof(int));
    mem[2 * i + 1] = QMP_declare_msgmem(out[0][i], ints * sizeof(int));
    handle[2 * i] =
        i % 2 == 0 ? QMP_declare_receive_from(mem[2 * i], i, 0) : QMP_comm_declare_receive_from(comm, mem[2 * i], i, 0);
    handle[2 * i + 1] =
        i % 2 == 0 ? QMP_declare_send_to(mem[2 * i + 1], i, 0) : QMP_comm_declare_send_to(comm, mem[2 * i + 1], i, 0);
  }
  for (int step = 0; step < steps; ++step) {
    const int which = step / 3 % 2;
    for (int i = 0; i < n; ++i) {
      const int ints = 1 + 700 * ((my_rank() + i) % 4);
      CHECK(QMP_change_address(handle[2 * i], in[which][i]) == QMP_SUCCESS);
      CHECK(QMP_change_address(handle[2 * i + 1], out[which][i]) == QMP_SUCCESS);
      fill(out[which][i], i, step, ints);
    }
    /* Sends first in some steps, so that messages arrive before they are requested. */
    for (int k = 0; k < 2; ++k) {
      for (int i = 0; i < n; ++i) CHECK(QMP_start(handle[2 * i + (k + step) % 2]) == QMP_SUCCESS);
      int sum = 1;
      CHECK(QMP_sum_int(&sum) == QMP_SUCCESS && sum == n); /* other messages must not disturb it */
    }
    CHECK(QMP_wait_all(handle, 2 * n) == QMP_SUCCESS);
    for (int i = 0; i < n; ++i) check_received(in[which][i], i, step, 1 + 700 * ((my_rank() + i) % 4));
  }
  for (int i = 0; i < 2 * n; ++i) QMP_free_msghandle(handle[i]);
  for (int i = 0; i < 2 * n; ++i) QMP_free_msgmem(mem[i]);
}

/* A message longer than a channel holds is sent before it is received. */
void long_messages(void) {
  const int n = all_ranks();
  const int ints = 500000;
  const int to = (my_rank() + 1) % n;
  const int from = (my_rank() + n - 1) % n;
  int* out = malloc(ints * sizeof(int));
  int* in = malloc(ints * sizeof(int));
  QMP_msgmem_t mem[2] = {QMP_declare_msgmem(out, ints * sizeof(int)), QMP_declare_msgmem(in, ints * sizeof(int))};
  QMP_msghandle_t send = QMP_declare_send_to(mem[0], to, 0);
  QMP_msghandle_t receive = QMP_declare_receive_from(mem[1], from, 0);
  for (int step = 0; step < 3; ++step) {
    fill(out, to, step, ints);
    CHECK(QMP_start(send) == QMP_SUCCESS);
    if (step == 1) CHECK(QMP_barrier() == QMP_SUCCESS);
    CHECK(QMP_start(receive) == QMP_SUCCESS && QMP_wait(receive) == QMP_SUCCESS && QMP_wait(send) == QMP_SUCCESS);
    check_received(in, from, step, ints);
  }
  QMP_free_msghandle(send);
  QMP_free_msghandle(receive);
  for (int i = 0; i < 2; ++i) QMP_free_msgmem(mem[i]);
  free(out);
  free(in);
}

/* From one kind of memory into another; both list 24 ints, in some order of a field of 60. */
void layouts(void) {
  const int n = all_ranks();
  const int to = (my_rank() + 1) % n;
  const int from = (my_rank() + n - 1) % n;
  static int out[60];
  static int in[60];
  static int out2[60];
  int order[4][24];
  int lengths[3] = {10, 2, 12};
  int indices[3] = {30, 5, 44};
  for (int i = 0; i < 24; ++i) {
    order[0][i] = 2 + i;                                                      /* contiguous */
    order[1][i] = 1 + i / 4 * 10 + i % 4;                                     /* 6 blocks of 4, 10 apart */
    order[2][i] = i < 12 ? i / 3 * 7 + i % 3 : 36 + (i - 12) / 2 * 3 + i % 2; /* 4 of 3, 7 apart; 6 of 2, 3 apart */
    order[3][i] = i < 10 ? 30 + i : i < 12 ? 5 + i - 10 : 44 + i - 12;
  }
  for (int kind = 0; kind < 16; ++kind) {
    QMP_msgmem_t mem[2];
    for (int side = 0; side < 2; ++side) {
      int* base = side == 0 ? out : in;
      void* bases[2] = {base, base + 36};
      size_t sizes[2] = {3 * sizeof(int), 2 * sizeof(int)};
      int counts[2] = {4, 6};
      ptrdiff_t strides[2] = {7 * sizeof(int), 3 * sizeof(int)};
      switch (side == 0 ? kind % 4 : kind / 4) {
        case 0:
          mem[side] = QMP_declare_msgmem(base + 2, 24 * sizeof(int));
          break;
        case 1:
          mem[side] = QMP_declare_strided_msgmem(base + 1, 4 * sizeof(int), 6, 10 * sizeof(int));
          break;
        case 2:
          mem[side] = QMP_declare_strided_array_msgmem(bases, sizes, counts, strides, 2);
          break;
        default:
          mem[side] = QMP_declare_indexed_msgmem(base, lengths, indices, sizeof(int), 3);
          break;
      }
    }
    QMP_msghandle_t handles[2] = {QMP_declare_send_to(mem[0], to, 0), QMP_declare_receive_from(mem[1], from, 0)};
    QMP_msghandle_t inner = QMP_declare_multiple(handles, 1);
    QMP_msghandle_t pair[2] = {inner, handles[1]};
    QMP_msghandle_t both = QMP_declare_multiple(pair, 2);
    void* addresses[2] = {NULL, NULL};
    for (int side = 0; side < 2; ++side) {
      const int kind_here = side == 0 ? kind % 4 : kind / 4;
      addresses[side] = (side == 0 ? out2 : in) + (kind_here == 0 ? 2 : kind_here == 1 ? 1 : 0);
    }
    CHECK(QMP_change_address_multiple(both, addresses, 2) == QMP_SUCCESS);
    for (int i = 0; i < 60; ++i) {
      out2[i] = pattern(my_rank(), to, kind, i);
      in[i] = -1;
    }
    CHECK(QMP_start(both) == QMP_SUCCESS && QMP_wait(both) == QMP_SUCCESS);
    int written = 0;
    for (int i = 0; i < 24; ++i) {
      CHECK(in[order[kind / 4][i]] == pattern(from, my_rank(), kind, order[kind % 4][i]));
    }
    for (int i = 0; i < 60; ++i) written += in[i] != -1;
    CHECK(written == 24);
    QMP_free_msghandle(both);
    for (int side = 0; side < 2; ++side) QMP_free_msgmem(mem[side]);
  }
}
