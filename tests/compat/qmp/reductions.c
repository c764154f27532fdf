/* Sums, extrema, broadcasts, and communicators that are parts of others. */
#include <math.h>
#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

enum { max_ranks = 8 };

static void larger_of(void* inout, void* in) {
  if (*(int*)in > *(int*)inout) *(int*)inout = *(int*)in;
}

void global_operations(QMP_comm_t comm, int me, int n) {
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
  /* A NaN of the last node stays. */
  fmax = fmin = me == n - 1 ? (float)NAN : 1;
  dmax = dmin = me == n - 1 ? NAN : 1;
  CHECK(QMP_comm_max_float(comm, &fmax) == QMP_SUCCESS && isnan(fmax));
  CHECK(QMP_comm_min_float(comm, &fmin) == QMP_SUCCESS && isnan(fmin));
  CHECK(QMP_comm_max_double(comm, &dmax) == QMP_SUCCESS && isnan(dmax));
  CHECK(QMP_comm_min_double(comm, &dmin) == QMP_SUCCESS && isnan(dmin));
  CHECK(QMP_comm_xor_ulong(comm, &x) == QMP_SUCCESS && x == (1UL << n) - 1);
  CHECK(QMP_comm_binary_reduction(comm, &best, sizeof best, larger_of) == QMP_SUCCESS && best == bestwant);
  int values[100];
  for (int k = 0; k < 100; ++k) values[k] = me == 0 ? k * k : -1;
  CHECK(QMP_comm_broadcast(comm, values, sizeof values) == QMP_SUCCESS && values[99] == 9801);
  int sent[max_ranks], got[max_ranks];
  for (int k = 0; k < n; ++k) sent[k] = 100 * me + k;
  CHECK(QMP_comm_alltoall(comm, (char*)got, (char*)sent, sizeof(int)) == QMP_SUCCESS);
  for (int k = 0; k < n; ++k) CHECK(got[k] == 100 * k + me);
  CHECK(QMP_comm_barrier(comm) == QMP_SUCCESS);
}

static void twice_the_first(void* inout, void* in) { *(int*)inout += 2 * *(int*)in; }

static void add_where_all_add(void* inout, void* in) {
  int all = 1;
  QMP_sum_int(&all);
  *(int*)inout += all * *(int*)in;
}

/* A function that calls QMP itself. */
void nested_reduction(void) {
  const int n = all_ranks();
  int value = 1;
  int expected = 1;
  for (int k = 1; k < n; ++k) expected = 1 + n * expected;
  CHECK(QMP_binary_reduction(&value, sizeof value, add_where_all_add) == QMP_SUCCESS && value == expected);
}

/* A function whose result depends on the order of nodes. */
void ordered_reduction(void) {
  int value = my_rank() + 1;
  int expected = 1;
  for (int k = 1; k < all_ranks(); ++k) expected = k + 1 + 2 * expected;
  CHECK(QMP_binary_reduction(&value, sizeof value, twice_the_first) == QMP_SUCCESS && value == expected);
}

/* The same for the default communicator, for functions that exist for it separately. */
void global_of_default(void) {
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
void halves(void) {
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
