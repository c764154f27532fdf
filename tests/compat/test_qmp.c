/* Every function of QMP. Messages carry values that tell who sent them, to whom and when. */
#include <stdarg.h>
#include <unistd.h>

#include "check.h"
#include "qmp.h"

enum { steps = 12, most = 8 };

static void begin(int argc, char** argv) {
  QMP_thread_level_t provided;
  CHECK(!QMP_is_initialized());
  CHECK(QMP_init_msg_passing(&argc, &argv, QMP_THREAD_MULTIPLE, &provided) == QMP_SUCCESS);
  CHECK(QMP_is_initialized() && provided == QMP_THREAD_SERIALIZED);
}

static void machine(void) {
  const int n = all_ranks();
  CHECK(QMP_get_number_of_nodes() == n && QMP_get_node_number() == my_rank());
  CHECK(QMP_comm_get_number_of_nodes(QMP_comm_get_allocated()) == n);
  CHECK(QMP_comm_get_node_number(QMP_comm_get_job()) == my_rank());
  CHECK(QMP_is_primary_node() == (my_rank() == 0));
  CHECK(QMP_comm_is_primary_node(QMP_comm_get_default()) == (my_rank() == 0));
  CHECK(QMP_get_msg_passing_type() == QMP_SWITCH);
  CHECK(QMP_get_number_of_jobs() == 1 && QMP_get_job_number() == 0);
  CHECK(QMP_get_number_of_job_geometry_dimensions() == 0 && QMP_get_job_geometry() == NULL);
  CHECK(QMP_get_allocated_number_of_dimensions() == 0 && QMP_get_allocated_dimensions() == NULL);
  CHECK(QMP_io_node(3) == 3 && QMP_master_io_node() == 0);
  CHECK(QMP_version_int() == 2005004 && strcmp(QMP_version_str(), "2.5.4") == 0);
  CHECK(QMP_time() > 1e9);
  QMP_reset_total_qmp_time();
  CHECK(QMP_get_total_qmp_time() == 0);
  CHECK(QMP_verbose(2) == 0 && QMP_verbose(0) == 2 && QMP_profcontrol(1) == 0 && QMP_profcontrol(0) == 1);
  CHECK(strcmp(QMP_error_string(QMP_SUCCESS), QMP_error_string(QMP_ERROR)) != 0);
  CHECK(strlen(QMP_error_string(QMP_TIMEOUT)) > 0 && strlen(QMP_error_string((QMP_status_t)7)) > 0);
  CHECK(QMP_get_error_number(NULL) == QMP_SUCCESS);
  CHECK(strcmp(QMP_get_error_string(NULL), QMP_error_string(QMP_SUCCESS)) == 0);
  CHECK(QMP_printf("%d", 1234) == 4 && QMP_info("%s", "ab") == 2 && QMP_fprintf(stdout, "x") == 1);
  CHECK(QMP_error("%s", "this line is part of the test") > 0);
  void* mpi;
  CHECK(QMP_get_hidden_comm(QMP_comm_get_default(), &mpi) == QMP_NOTSUPPORTED && mpi == NULL);
  CHECK(QMP_get_mpi_comm(QMP_comm_get_default(), &mpi) == QMP_NOTSUPPORTED);
}

static void topology(void) {
  const int n = all_ranks();
  const int sizes[3] = {n % 2 == 0 ? 2 : 1, 1, n % 2 == 0 ? n / 2 : n};
  const int wrong[1] = {n + 1};
  QMP_comm_t comm;
  CHECK(QMP_comm_split(QMP_comm_get_default(), 0, my_rank(), &comm) == QMP_SUCCESS);
  CHECK(QMP_comm_declare_logical_topology(comm, wrong, 1) == QMP_INVALID_ARG);
  CHECK(!QMP_comm_logical_topology_is_declared(comm));
  CHECK(QMP_comm_declare_logical_topology(comm, sizes, 3) == QMP_SUCCESS);
  CHECK(QMP_comm_logical_topology_is_declared(comm) && QMP_comm_get_logical_number_of_dimensions(comm) == 3);
  CHECK(memcmp(QMP_comm_get_logical_dimensions(comm), sizes, sizeof sizes) == 0);
  const int* mine = QMP_comm_get_logical_coordinates(comm);
  CHECK(mine[0] == my_rank() % sizes[0] && mine[2] == my_rank() / sizes[0]);
  for (int node = 0; node < n; ++node) {
    int* coords = QMP_comm_get_logical_coordinates_from(comm, node);
    int same[3];
    QMP_comm_get_logical_coordinates_from2(comm, same, node);
    CHECK(memcmp(coords, same, sizeof same) == 0);
    CHECK(QMP_comm_get_node_number_from(comm, coords) == node);
    free(coords);
  }
  CHECK(QMP_comm_free(comm) == QMP_SUCCESS);

  /* The last axis first. */
  const int map[3] = {2, 1, 0};
  CHECK(QMP_comm_split(QMP_comm_get_default(), 0, my_rank(), &comm) == QMP_SUCCESS);
  CHECK(QMP_comm_declare_logical_topology_map(comm, sizes, 3, map, 3) == QMP_SUCCESS);
  mine = QMP_comm_get_logical_coordinates(comm);
  CHECK(mine[2] == my_rank() % sizes[2] && mine[0] == my_rank() / sizes[2]);
  CHECK(QMP_comm_free(comm) == QMP_SUCCESS);
}

/* The default communicator's: one that QMP chooses for a lattice. */
static void layout(void) {
  const int n = all_ranks();
  const int lattice[4] = {4, 4, 8, 16};
  CHECK(!QMP_logical_topology_is_declared() && QMP_get_logical_number_of_dimensions() == 0);
  CHECK(QMP_layout_grid(lattice, 4) == QMP_SUCCESS);
  CHECK(QMP_logical_topology_is_declared() && QMP_get_logical_number_of_dimensions() == 4);
  const int* cuts = QMP_get_logical_dimensions();
  const int* piece = QMP_get_subgrid_dimensions();
  int sites = 1;
  for (int i = 0; i < 4; ++i) {
    CHECK(cuts[i] * piece[i] == lattice[i]);
    sites *= piece[i];
  }
  CHECK(cuts[3] == n && QMP_get_number_of_subgrid_sites() == sites);
  const int* mine = QMP_get_logical_coordinates();
  CHECK(QMP_get_node_number_from(mine) == my_rank());
  int* coords = QMP_get_logical_coordinates_from(my_rank());
  int same[4];
  QMP_get_logical_coordinates_from2(same, my_rank());
  CHECK(memcmp(coords, mine, sizeof same) == 0 && memcmp(same, mine, sizeof same) == 0);
  free(coords);
  const int again[1] = {n};
  QMP_comm_t comm;
  CHECK(QMP_comm_split(QMP_comm_get_default(), 0, 0, &comm) == QMP_SUCCESS);
  QMP_comm_t before = QMP_comm_get_default();
  CHECK(QMP_comm_set_default(comm) == QMP_SUCCESS && QMP_comm_get_default() == comm);
  CHECK(QMP_declare_logical_topology(again, 1) == QMP_SUCCESS && QMP_get_logical_number_of_dimensions() == 1);
  CHECK(QMP_comm_set_default(before) == QMP_SUCCESS);
  CHECK(QMP_comm_free(comm) == QMP_SUCCESS);
  CHECK(QMP_comm_split(before, 0, 0, &comm) == QMP_SUCCESS && QMP_comm_set_default(comm) == QMP_SUCCESS);
  const int map[1] = {0};
  CHECK(QMP_declare_logical_topology_map(again, 1, map, 1) == QMP_SUCCESS);
  CHECK(QMP_comm_set_default(before) == QMP_SUCCESS && QMP_comm_free(comm) == QMP_SUCCESS);
  CHECK(QMP_comm_set_job(QMP_comm_get_job()) == QMP_SUCCESS);
  CHECK(QMP_comm_set_allocated(QMP_comm_get_allocated()) == QMP_SUCCESS);
}

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

/* Both neighbours along an axis at once, as one multiple message, with memory of QMP's. */
static void halo(int axis, int ints) {
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
      /* What comes from above was sent downwards. */
      for (int i = 0; i < ints; ++i) CHECK(in[d][i] == pattern(to[d], my_rank() + 100 * (1 - d), step, i));
    }
  }
  QMP_free_msghandle(all);
  for (int i = 0; i < 4; ++i) QMP_free_msgmem(mem[i]);
  QMP_free_memory(memory);
}

/* Everybody with everybody, oneself too, by number, in messages of different length whose addresses change. */
static void all_pairs(void) {
  const int n = all_ranks();
  static int out[2][most][3000];
  static int in[2][most][3000];
  QMP_msghandle_t handle[2 * most];
  QMP_msgmem_t mem[2 * most];
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
    /* Sends first in some steps, so that messages come that nobody has asked for. */
    for (int k = 0; k < 2; ++k) {
      for (int i = 0; i < n; ++i) CHECK(QMP_start(handle[2 * i + (k + step) % 2]) == QMP_SUCCESS);
      int sum = 1;
      CHECK(QMP_sum_int(&sum) == QMP_SUCCESS && sum == n); /* others' messages must not get into its way */
    }
    CHECK(QMP_wait_all(handle, 2 * n) == QMP_SUCCESS);
    for (int i = 0; i < n; ++i) check_received(in[which][i], i, step, 1 + 700 * ((my_rank() + i) % 4));
  }
  for (int i = 0; i < 2 * n; ++i) QMP_free_msghandle(handle[i]);
  for (int i = 0; i < 2 * n; ++i) QMP_free_msgmem(mem[i]);
}

/* A message longer than what a channel holds, before anybody receives it. */
static void long_messages(void) {
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
static void layouts(void) {
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

static void larger_of(void* inout, void* in) {
  if (*(int*)in > *(int*)inout) *(int*)inout = *(int*)in;
}

static void global_operations(QMP_comm_t comm, int me, int n) {
  int i = me + 1;
  uint64_t u = UINT64_C(1) << (40 + me);
  float f = 0.1f + me;
  double d = 0.1 + me;
  long double l = 0.1L + me;
  double e = 0.1 + me;
  float fa[3] = {0.1f * me, 1, 2};
  double da[3] = {0.1 * me, 1, 2};
  long double la[2] = {0.1L * me, 1};
  float fmax = me, fmin = me;
  double dmax = -me, dmin = -me;
  unsigned long x = 1UL << me;
  int best = (me * 7) % 5;
  int iwant = 0;
  uint64_t uwant = 0;
  double fwant = 0, dwant = 0, dawant = 0;
  long double lwant = 0, ewant = 0, lawant = 0;
  float fawant = 0;
  int bestwant = 0;
  for (int k = 0; k < n; ++k) {
    iwant += k + 1;
    uwant += UINT64_C(1) << (40 + k);
    fwant += 0.1f + k;
    dwant += 0.1 + k;
    lwant += 0.1L + k;
    ewant += 0.1 + k;
    fawant += 0.1f * k;
    dawant += 0.1 * k;
    lawant += 0.1L * k;
    if ((k * 7) % 5 > bestwant) bestwant = (k * 7) % 5;
  }
  CHECK(QMP_comm_sum_int(comm, &i) == QMP_SUCCESS && i == iwant);
  CHECK(QMP_comm_sum_uint64_t(comm, &u) == QMP_SUCCESS && u == uwant);
  CHECK(QMP_comm_sum_float(comm, &f) == QMP_SUCCESS && f == (float)fwant);
  CHECK(QMP_comm_sum_double(comm, &d) == QMP_SUCCESS && d == dwant);
  CHECK(QMP_comm_sum_long_double(comm, &l) == QMP_SUCCESS && l == lwant);
  CHECK(QMP_comm_sum_double_extended(comm, &e) == QMP_SUCCESS && e == (double)ewant);
  CHECK(QMP_comm_sum_float_array(comm, fa, 3) == QMP_SUCCESS && fa[0] == fawant && fa[2] == 2.0f * n);
  CHECK(QMP_comm_sum_double_array(comm, da, 3) == QMP_SUCCESS && da[0] == dawant && da[1] == n);
  CHECK(QMP_comm_sum_long_double_array(comm, la, 2) == QMP_SUCCESS && la[0] == lawant && la[1] == n);
  CHECK(QMP_comm_max_float(comm, &fmax) == QMP_SUCCESS && fmax == n - 1);
  CHECK(QMP_comm_min_float(comm, &fmin) == QMP_SUCCESS && fmin == 0);
  CHECK(QMP_comm_max_double(comm, &dmax) == QMP_SUCCESS && dmax == 0);
  CHECK(QMP_comm_min_double(comm, &dmin) == QMP_SUCCESS && dmin == 1 - n);
  CHECK(QMP_comm_xor_ulong(comm, &x) == QMP_SUCCESS && x == (1UL << n) - 1);
  CHECK(QMP_comm_binary_reduction(comm, &best, sizeof best, larger_of) == QMP_SUCCESS && best == bestwant);
  int values[100];
  for (int k = 0; k < 100; ++k) values[k] = me == 0 ? k * k : -1;
  CHECK(QMP_comm_broadcast(comm, values, sizeof values) == QMP_SUCCESS && values[99] == 9801);
  int sent[most], got[most];
  for (int k = 0; k < n; ++k) sent[k] = 100 * me + k;
  CHECK(QMP_comm_alltoall(comm, (char*)got, (char*)sent, sizeof(int)) == QMP_SUCCESS);
  for (int k = 0; k < n; ++k) CHECK(got[k] == 100 * k + me);
  CHECK(QMP_comm_barrier(comm) == QMP_SUCCESS);
}

static void twice_the_first(void* inout, void* in) { *(int*)inout += 2 * *(int*)in; }

/* The order of nodes, which a function may tell. */
static void ordered_reduction(void) {
  int value = my_rank() + 1;
  int expected = 1;
  for (int k = 1; k < all_ranks(); ++k) expected = k + 1 + 2 * expected;
  CHECK(QMP_binary_reduction(&value, sizeof value, twice_the_first) == QMP_SUCCESS && value == expected);
}

/* The same for the default communicator, as far as its functions are others. */
static void global_of_default(void) {
  const int n = all_ranks();
  uint64_t u = 1;
  float f = 1, fa[1] = {1}, fmax = my_rank(), fmin = my_rank();
  double d = 1, e = 1, da[1] = {1}, dmax = my_rank(), dmin = my_rank();
  long double l = 1, la[1] = {1};
  unsigned long x = 1;
  int best = my_rank(), value = my_rank() + 5;
  CHECK(QMP_sum_uint64_t(&u) == QMP_SUCCESS && u == (uint64_t)n);
  CHECK(QMP_sum_float(&f) == QMP_SUCCESS && f == n);
  CHECK(QMP_sum_double(&d) == QMP_SUCCESS && d == n);
  CHECK(QMP_sum_double_extended(&e) == QMP_SUCCESS && e == n);
  CHECK(QMP_sum_long_double(&l) == QMP_SUCCESS && l == n);
  CHECK(QMP_sum_float_array(fa, 1) == QMP_SUCCESS && fa[0] == n);
  CHECK(QMP_sum_double_array(da, 1) == QMP_SUCCESS && da[0] == n);
  CHECK(QMP_sum_long_double_array(la, 1) == QMP_SUCCESS && la[0] == n);
  CHECK(QMP_max_float(&fmax) == QMP_SUCCESS && fmax == n - 1 && QMP_min_float(&fmin) == QMP_SUCCESS && fmin == 0);
  CHECK(QMP_max_double(&dmax) == QMP_SUCCESS && dmax == n - 1 && QMP_min_double(&dmin) == QMP_SUCCESS && dmin == 0);
  CHECK(QMP_xor_ulong(&x) == QMP_SUCCESS && x == (unsigned long)(n % 2));
  CHECK(QMP_binary_reduction(&best, sizeof best, larger_of) == QMP_SUCCESS && best == n - 1);
  CHECK(QMP_broadcast(&value, sizeof value) == QMP_SUCCESS && value == 5);
}

/* Two halves, numbered backwards. */
static void halves(void) {
  const int n = all_ranks();
  const int colour = my_rank() < n / 2 ? 0 : 1;
  const int size = colour == 0 ? n / 2 : n - n / 2;
  QMP_comm_t half;
  CHECK(QMP_comm_split(QMP_comm_get_default(), colour, -my_rank(), &half) == QMP_SUCCESS);
  CHECK(QMP_comm_get_number_of_colors(half) == (n > 1 ? 2 : 1) && QMP_comm_get_color(half) == colour);
  CHECK(QMP_comm_get_key(half) == -my_rank() && QMP_comm_get_number_of_nodes(half) == size);
  const int me = QMP_comm_get_node_number(half);
  CHECK(me == size - 1 - (my_rank() - (colour == 0 ? 0 : n / 2)));
  global_operations(half, me, size);
  const int dims[1] = {size};
  CHECK(QMP_comm_declare_logical_topology(half, dims, 1) == QMP_SUCCESS);
  int out = 10 * my_rank(), in = -1;
  QMP_msgmem_t mem[2] = {QMP_declare_msgmem(&out, sizeof out), QMP_declare_msgmem(&in, sizeof in)};
  QMP_msghandle_t send = QMP_comm_declare_send_relative(half, mem[0], 0, 1, 0);
  QMP_msghandle_t receive = QMP_comm_declare_receive_relative(half, mem[1], 0, -1, 0);
  CHECK(QMP_start(send) == QMP_SUCCESS && QMP_start(receive) == QMP_SUCCESS);
  CHECK(QMP_wait(send) == QMP_SUCCESS && QMP_wait(receive) == QMP_SUCCESS);
  const int first = colour == 0 ? 0 : n / 2;
  CHECK(in == 10 * (first + size - 1 - (me + size - 1) % size)); /* numbered backwards */
  QMP_free_msghandle(send);
  QMP_free_msghandle(receive);
  for (int i = 0; i < 2; ++i) QMP_free_msgmem(mem[i]);
  CHECK(QMP_comm_free(half) == QMP_SUCCESS);
}

/* Errors. */
static int number;

static void begin_plainly(void) {
  static char* arguments[] = {"test", NULL};
  begin(1, arguments);
}

static void too_early(void) { QMP_barrier(); }

static void wrong_node(void) {
  begin_plainly();
  QMP_declare_send_to(QMP_declare_msgmem(&number, sizeof number), all_ranks(), 0);
}

static void started_twice(void) {
  begin_plainly();
  QMP_msghandle_t handle = QMP_declare_receive_from(QMP_declare_msgmem(&number, sizeof number), 0, 0);
  QMP_start(handle);
  QMP_start(handle);
}

static void no_topology(void) {
  begin_plainly();
  QMP_declare_send_relative(QMP_declare_msgmem(&number, sizeof number), 0, 1, 0);
}

static void too_long(void) {
  static int numbers[2];
  begin_plainly();
  QMP_msgmem_t mem = QMP_declare_msgmem(numbers, (my_rank() + 1) * sizeof(int));
  QMP_msghandle_t handle = my_rank() == 0 ? QMP_declare_receive_from(mem, 1, 0) : QMP_declare_send_to(mem, 0, 0);
  QMP_start(handle);
  QMP_wait(handle);
}

static void part_of_another(void) {
  begin_plainly();
  QMP_msghandle_t handle = QMP_declare_receive_from(QMP_declare_msgmem(&number, sizeof number), 0, 0);
  QMP_declare_multiple(&handle, 1);
  QMP_free_msghandle(handle);
}

static void aborted(void) {
  begin_plainly();
  QMP_abort(42);
}

static void aborted_with_words(void) { QMP_abort_string(43, "words of the program"); }

static void lost_peer(void) {
  begin_plainly();
  if (my_rank() == 1) _exit(0);
  QMP_barrier();
}

static const struct error_case errors[] = {
    {"early", 1, 1, "expected QMP_init_msg_passing to be called before", too_early},
    {"node", 2, 1, "expected a node from 0 to 1, found 2", wrong_node},
    {"twice", 1, 1, "QMP_start: expected a handle that is not under way", started_twice},
    {"topology", 1, 1, "expected a communicator with a logical topology", no_topology},
    {"long", 2, 1, "rank 0 receives 4 bytes from rank 1, which sent 8", too_long},
    {"part", 1, 1, "QMP_free_msghandle: expected a handle by itself", part_of_another},
    {"abort", 1, 42, "error 42", aborted},
    {"abort_string", 1, 43, "words of the program", aborted_with_words},
    {"lost", 2, 3, "rank 1", lost_peer},
};

int main(int argc, char** argv) {
  if (made_error(argc, argv, errors, sizeof errors / sizeof errors[0])) return 0;
  if (!freopen("/dev/null", "w", stdout)) return 1; /* QMP_printf is no concern of ctest's */
  begin(argc, argv);
  machine();
  topology();
  layout();
  for (int axis = 0; axis < 4; ++axis) halo(axis, axis == 3 ? 3000 : 5);
  all_pairs();
  long_messages();
  layouts();
  global_operations(QMP_comm_get_default(), my_rank(), all_ranks());
  global_of_default();
  ordered_reduction();
  halves();
  CHECK(QMP_barrier() == QMP_SUCCESS);
  QMP_finalize_msg_passing();
  CHECK(!QMP_is_initialized());
  return 0;
}
