/* The C interface on any number of ranks, against plain loops over the sources of all ranks, which every rank knows.
 * With USE_MPI the ranks are those of a communicator. */
#define _POSIX_C_SOURCE 200809L
#include <complex.h>
#include <onehop.h>
#ifdef USE_MPI
#include <onehop_mpi.h>
#endif
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size, failures;

static void fail(int line, const char* what) {
  ++failures;
  fprintf(stderr, "rank %d, line %d: %s; last error: %s\n", rank, line, what, onehop_error_message());
}
#define CHECK(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))
#define GOOD(call) CHECK((call) == ONEHOP_SUCCESS)
/* A call that fails with this code, and a text that has these words. */
#define BAD(call, code, words) CHECK((call) == (code) && strstr(onehop_error_message(), (words)) != NULL)

enum { COUNT = 13 };
#define SOURCE(type, of, i) ((type)((((i) * 7 + (of) * 3) % 5) - 2 + COMPLEX(type)))
#define COMPLEX(type) 0
#define COMBINE(op, a, b)                                  \
  ((op) == ONEHOP_SUM           ? (a) + (b)                \
   : (op) == ONEHOP_PROD        ? (a) * (b)                \
   : (op) == ONEHOP_LOGICAL_AND ? ((a) != 0) && ((b) != 0) \
   : (op) == ONEHOP_LOGICAL_OR  ? ((a) != 0) || ((b) != 0) \
                                : ((a) != 0) != ((b) != 0))
#define ORDERED(op, a, b) \
  ((op) == ONEHOP_MIN ? ((a) < (b) ? (a) : (b)) : (op) == ONEHOP_MAX ? ((a) > (b) ? (a) : (b)) : COMBINE(op, a, b))
#define BITS(op, a, b)                      \
  ((op) == ONEHOP_BITWISE_AND   ? (a) & (b) \
   : (op) == ONEHOP_BITWISE_OR  ? (a) | (b) \
   : (op) == ONEHOP_BITWISE_XOR ? (a) ^ (b) \
                                : ORDERED(op, a, b))

/* All reductions of a type, by every operator that `combine` has. */
#define TEST_TYPE(name, type, code, combine, has)                                                \
  static void name(onehop_group* group) {                                                        \
    for (int op = ONEHOP_SUM; op <= ONEHOP_BITWISE_XOR; ++op) {                                  \
      const int logical = op >= ONEHOP_LOGICAL_AND && op <= ONEHOP_LOGICAL_XOR;                  \
      type mine[COUNT], all[COUNT], upto[COUNT], found[COUNT], block[1];                         \
      if (!(has)) {                                                                              \
        BAD(onehop_allreduce(group, mine, found, 1, code, op), ONEHOP_BAD_INPUT, "there is no"); \
        continue;                                                                                \
      }                                                                                          \
      for (int i = 0; i < COUNT; ++i) {                                                          \
        mine[i] = SOURCE(type, rank, i);                                                         \
        all[i] = upto[i] = logical ? (type)(SOURCE(type, 0, i) != 0) : SOURCE(type, 0, i);       \
        for (int r = 1; r < size; ++r) {                                                         \
          all[i] = (type)(combine(op, all[i], SOURCE(type, r, i)));                              \
          if (r <= rank) upto[i] = all[i];                                                       \
        }                                                                                        \
      }                                                                                          \
      GOOD(onehop_allreduce(group, mine, found, COUNT, code, op));                               \
      CHECK(memcmp(found, all, sizeof all) == 0);                                                \
      GOOD(onehop_scan(group, mine, found, COUNT, code, op));                                    \
      CHECK(memcmp(found, upto, sizeof all) == 0);                                               \
      memcpy(found, mine, sizeof mine);                                                          \
      GOOD(onehop_reduce(group, found, found, COUNT, code, op, size - 1));                       \
      CHECK(memcmp(found, rank == size - 1 ? all : mine, sizeof all) == 0);                      \
      GOOD(onehop_reduce_scatter(group, mine, block, 1, NULL, code, op));                        \
      CHECK(block[0] == all[rank]);                                                              \
    }                                                                                            \
  }
TEST_TYPE(int8, int8_t, ONEHOP_INT8, BITS, 1)
TEST_TYPE(int16, int16_t, ONEHOP_INT16, BITS, 1)
TEST_TYPE(int32, int32_t, ONEHOP_INT32, BITS, 1)
TEST_TYPE(int64, int64_t, ONEHOP_INT64, BITS, 1)
TEST_TYPE(uint8, uint8_t, ONEHOP_UINT8, BITS, 1)
TEST_TYPE(uint16, uint16_t, ONEHOP_UINT16, BITS, 1)
TEST_TYPE(uint32, uint32_t, ONEHOP_UINT32, BITS, 1)
TEST_TYPE(uint64, uint64_t, ONEHOP_UINT64, BITS, 1)
TEST_TYPE(floats, float, ONEHOP_FLOAT, ORDERED, op < ONEHOP_BITWISE_AND)
TEST_TYPE(doubles, double, ONEHOP_DOUBLE, ORDERED, op < ONEHOP_BITWISE_AND)
#undef SOURCE
#define SOURCE(type, of, i) ((type)(((i) * 7 + (of) * 3) % 5 - 1) + (type)((of) % 2 + 1) * I)
#define HAS_COMPLEX (op < ONEHOP_MIN || (op > ONEHOP_MAX && op < ONEHOP_BITWISE_AND))
TEST_TYPE(float_complexes, float complex, ONEHOP_FLOAT_COMPLEX, COMBINE, HAS_COMPLEX)
TEST_TYPE(double_complexes, double complex, ONEHOP_DOUBLE_COMPLEX, COMBINE, HAS_COMPLEX)

/* Rank r has r + 1 numbers r. */
static void movement(onehop_group* group) {
  const int total = size * (size + 1) / 2, root = size - 1;
  int64_t counts[64], back[64];
  int mine[64], all[4096], sent[4096];
  for (int r = 0; r < size; ++r) counts[r] = r + 1;
  for (int i = 0; i <= rank; ++i) mine[i] = rank;
  GOOD(onehop_allgather(group, mine, all, 0, counts, ONEHOP_INT32));
  for (int r = 0, at = 0; r < size; ++r)
    for (int i = 0; i <= r; ++i) CHECK(all[at++] == r);
  memset(all, 0xff, sizeof all);
  GOOD(onehop_gather(group, mine, rank + 1, all, counts, ONEHOP_INT32, root));
  CHECK(all[0] == (rank == root ? 0 : -1) && all[total - 1] == (rank == root ? root : -1));
  GOOD(onehop_scatter(group, all, counts, mine, rank + 1, ONEHOP_INT32, root));
  for (int i = 0; i <= rank; ++i) CHECK(mine[i] == rank);
  double pair[2] = {rank, 7};
  GOOD(onehop_broadcast(group, pair, 2, ONEHOP_DOUBLE, root));
  CHECK(pair[0] == root && pair[1] == 7);
  for (int r = 0, at = 0; r < size; ++r)
    for (int i = 0; i <= r; ++i) sent[at++] = 10 * rank + r;
  for (int r = 0; r < size; ++r) back[r] = rank + 1;
  GOOD(onehop_alltoall(group, sent, counts, all, back, 0, ONEHOP_INT32));
  for (int r = 0, at = 0; r < size; ++r)
    for (int i = 0; i <= rank; ++i) CHECK(all[at++] == 10 * r + rank);
  GOOD(onehop_alltoall(group, counts, NULL, back, NULL, 1, ONEHOP_INT64));
  for (int r = 0; r < size; ++r) CHECK(back[r] == rank + 1);
  uint8_t bits = (uint8_t)(1 << rank % 8), before = 9;
  GOOD(onehop_exscan(group, &bits, &before, 1, ONEHOP_UINT8, ONEHOP_BITWISE_OR));
  CHECK(before == (uint8_t)((1 << rank) - 1));
  float mean = (float)rank;
  GOOD(onehop_allreduce(group, &mean, &mean, 1, ONEHOP_FLOAT, ONEHOP_MEAN));
  CHECK(mean == (float)(size - 1) / 2);
}

static void messages(onehop_group* group) {
  enum { LONG = 200000 };
  const int next = (rank + 1) % size, last = (rank + size - 1) % size;
  double* sent = malloc(LONG * sizeof *sent);
  double* found = calloc(LONG, sizeof *found);
  onehop_request* request = NULL;
  int done = 0, sender = -1;
  for (int i = 0; i < LONG; ++i) sent[i] = rank + i;
  GOOD(onehop_isend(group, sent, LONG, ONEHOP_DOUBLE, next, 5, &request));
  GOOD(onehop_send(group, sent + 3, 1, ONEHOP_DOUBLE, rank, 6));
  GOOD(onehop_receive(group, found, 1, ONEHOP_DOUBLE, rank, 6, NULL));
  CHECK(found[0] == rank + 3);
  GOOD(onehop_receive(group, found, LONG, ONEHOP_DOUBLE, size > 1 ? ONEHOP_ANY_RANK : 0, 5, &sender));
  CHECK(sender == last && found[0] == last && found[LONG - 1] == last + LONG - 1);
  while (request != NULL) GOOD(onehop_test(&request, &done));
  CHECK(done);
  GOOD(onehop_isend(group, sent, 2, ONEHOP_DOUBLE, next, 0, &request));
  GOOD(onehop_wait(&request));
  CHECK(request == NULL);
  BAD(onehop_receive(group, found, 1, ONEHOP_DOUBLE, last, 0, NULL), ONEHOP_MISMATCH, "16 bytes");
  BAD(onehop_send(group, sent, 1, ONEHOP_DOUBLE, size, 0), ONEHOP_BAD_INPUT, "expected a rank");
  BAD(onehop_send(group, sent, 1, ONEHOP_DOUBLE, 0, -1), ONEHOP_BAD_INPUT, "tag");
  BAD(onehop_receive(group, NULL, 1, ONEHOP_DOUBLE, 0, 0, NULL), ONEHOP_BAD_INPUT, "null pointer");
  BAD(onehop_isend(group, sent, 1, ONEHOP_DOUBLE, 0, 0, NULL), ONEHOP_BAD_INPUT, "null pointer");
  BAD(onehop_wait(&request), ONEHOP_BAD_INPUT, "null pointer");
  free(sent);
  free(found);
}

/* A periodic halo along the first dimension, twice. */
static void halo(onehop_group* group) {
  const int64_t extents[2] = {3 * size, 5}, none[2] = {0, 0}, below[2] = {1, 0}, fields[1] = {sizeof(double)};
  const int grid[2] = {size, 1}, periodic[2] = {1, 0};
  int64_t start[2], own[2], shape[2], bytes = 0, sent = 0;
  onehop_halo* spec = NULL;
  onehop_schedule* schedule = NULL;
  onehop_plan* plan = NULL;
  GOOD(onehop_halo_new(2, extents, grid, &spec));
  GOOD(onehop_halo_set_widths(spec, below, none));
  GOOD(onehop_halo_set_periodic(spec, periodic));
  GOOD(onehop_halo_set_corners(spec, 0));
  GOOD(onehop_halo_set_fields(spec, 1, fields));
  GOOD(onehop_halo_block(spec, rank, start, own, shape));
  CHECK(start[0] == 3 * rank && start[1] == 0 && own[0] == 3 && shape[0] == 4 && shape[1] == 5);
  GOOD(onehop_halo_schedule(spec, rank, &schedule));
  GOOD(onehop_schedule_array_bytes(schedule, 0, rank, &bytes));
  GOOD(onehop_schedule_bytes_sent(schedule, rank, &sent));
  CHECK(bytes == 160 && sent == (size > 1 ? 40 : 0));
  double field[4][5];
  void* arrays[1] = {field};
  for (int i = 0; i < 20; ++i) field[i / 5][i % 5] = 100 * rank + i;
  GOOD(onehop_plan_new(group, schedule, 1, arrays, &bytes, &plan));
  int complete = 0;
  GOOD(onehop_plan_start(plan));
  while (!complete) GOOD(onehop_plan_test(plan, &complete));
  GOOD(onehop_plan_finish(plan));
  for (int i = 0; i < 5; ++i) CHECK(field[0][i] == 100 * ((rank + size - 1) % size) + 15 + i);
  BAD(onehop_plan_finish(plan), ONEHOP_BAD_INPUT, "start");
  GOOD(onehop_plan_run(plan));
  /* One rank alone has a wrong array; no rank waits. */
  onehop_plan* other = NULL;
  if (rank == 0) arrays[0] = NULL;
  const int code = onehop_plan_new(group, schedule, 1, arrays, &bytes, &other);
  CHECK(code == (rank == 0 ? ONEHOP_BAD_INPUT : ONEHOP_ERROR) && other == NULL);
  CHECK(onehop_plan_new(group, schedule, 1000000, arrays, &bytes, &other) == ONEHOP_BAD_INPUT && other == NULL);
  GOOD(onehop_plan_free(&plan));
  BAD(onehop_plan_run(plan), ONEHOP_BAD_INPUT, "null pointer");
  GOOD(onehop_schedule_free(&schedule));
  GOOD(onehop_halo_free(&spec));
  /* Nothing behind these two is read. */
  int64_t* two = calloc(2, sizeof *two);
  const int many[] = {63, 1000000, 2147483647, -1};
  for (int i = 0; i < 4; ++i) {
    BAD(onehop_halo_new(many[i], two, grid, &spec), ONEHOP_BAD_INPUT, "onehop_halo_new: expected 0 to 6 dimensions");
    BAD(onehop_schedule_permute_bits(many[i], 1, (const int*)two, 8, -1, &schedule), ONEHOP_BAD_INPUT, "62 bits");
  }
  free(two);
  BAD(onehop_halo_new(2, NULL, grid, &spec), ONEHOP_BAD_INPUT, "null pointer");
}

/* Runs a schedule over two arrays of this rank, and frees it. */
static void run_plan(onehop_group* group, onehop_schedule* schedule, int count, void* first, void* second) {
  void* arrays[2] = {first, second};
  int64_t bytes[2] = {0, 0};
  onehop_plan* plan = NULL;
  for (int i = 0; i < count; ++i) GOOD(onehop_schedule_array_bytes(schedule, i, rank, &bytes[i]));
  GOOD(onehop_plan_new(group, schedule, count, arrays, bytes, &plan));
  GOOD(onehop_plan_run(plan));
  GOOD(onehop_plan_free(&plan));
  GOOD(onehop_schedule_free(&schedule));
}

static void patterns(onehop_group* group) {
  onehop_schedule* schedule = NULL;
  int32_t numbers[64], sums[64];
  for (int i = 0; i < 64; ++i) numbers[i] = rank + i;
  GOOD(onehop_schedule_allreduce(size, 64, ONEHOP_INT32, ONEHOP_SUM, -1, &schedule));
  run_plan(group, schedule, 2, numbers, sums);
  for (int i = 0; i < 64; ++i) CHECK(sums[i] == size * i + size * (size - 1) / 2);
  GOOD(onehop_schedule_reduce_scatter(size, 2, ONEHOP_INT32, ONEHOP_MAX, rank, &schedule));
  run_plan(group, schedule, 2, numbers, sums);
  CHECK(sums[0] == 2 * rank + size - 1 && sums[1] == 2 * rank + size);
  GOOD(onehop_schedule_broadcast(size, 64, 4, size - 1, -1, &schedule));
  run_plan(group, schedule, 1, numbers, NULL);
  CHECK(numbers[0] == size - 1 && numbers[63] == size + 62);
  numbers[rank] = 1000 + rank;
  GOOD(onehop_schedule_allgather(size, 1, 4, -1, &schedule));
  run_plan(group, schedule, 1, numbers, NULL);
  for (int r = 0; r < size; ++r) CHECK(numbers[r] == 1000 + r);
  if ((size & (size - 1)) == 0) { /* reverses the bits of the index */
    int bits = 2, permutation[8], wanted;
    while (1 << bits < 4 * size) ++bits;
    for (int i = 0; i < bits; ++i) permutation[i] = bits - 1 - i;
    for (int i = 0; i < 4; ++i) numbers[i] = 4 * rank + i;
    GOOD(onehop_schedule_permute_bits(bits, 2, permutation, 4, -1, &schedule));
    run_plan(group, schedule, 1, numbers, NULL);
    for (int i = 0; i < 4; ++i) {
      wanted = 0;
      for (int b = 0; b < bits; ++b) wanted |= ((4 * rank + i) >> b & 1) << (bits - 1 - b);
      CHECK(numbers[i] == wanted);
    }
  }
  const char* text =
      "{\"name\": \"none\", \"ranks\": 1, \"arrays\": [{\"name\": \"a\", \"element_bytes\": 8, \"elements\": [3]}], "
      "\"rounds\": [], \"must_cover\": []";
  BAD(onehop_schedule_from_json(text, &schedule), ONEHOP_BAD_INPUT, "onehop_schedule_from_json: ");
  BAD(onehop_schedule_from_json(NULL, &schedule), ONEHOP_BAD_INPUT, "null pointer");
  BAD(onehop_schedule_broadcast(size, 4, 4, size, -1, &schedule), ONEHOP_BAD_INPUT, "root");
  BAD(onehop_schedule_allreduce(size, 4, ONEHOP_UINT8, ONEHOP_SUM, -1, &schedule), ONEHOP_BAD_INPUT, "type");
  BAD(onehop_schedule_allreduce(size, 4, ONEHOP_INT32, ONEHOP_MEAN, -1, &schedule), ONEHOP_BAD_INPUT, "operator");
  CHECK(schedule == NULL || onehop_schedule_free(&schedule) == ONEHOP_BAD_INPUT); /* freed by run_plan */
  int64_t bytes = 0;
  text =
      "{\"onehop_schedule\": 1, \"ranks\": 1, \"arrays\": [{\"name\": \"a\", \"element_bytes\": 4294967296, "
      "\"elements\": "
      "4294967296}], \"rounds\": []}";
  GOOD(onehop_schedule_from_json(text, &schedule));
  BAD(onehop_schedule_array_bytes(schedule, 0, 0, &bytes), ONEHOP_BAD_INPUT, "the bytes of an array");
  GOOD(onehop_schedule_free(&schedule));
}

static void errors(onehop_group* group) {
  int number = 0;
  int32_t array[8] = {0};
  int64_t lengths[64] = {-1};
  onehop_group* nothing = NULL;
  BAD(onehop_group_rank(NULL, &number), ONEHOP_BAD_INPUT, "onehop_group_rank: expected a group");
  BAD(onehop_group_size(group, NULL), ONEHOP_BAD_INPUT, "null pointer");
  BAD(onehop_group_rank((onehop_group*)array, &number), ONEHOP_BAD_INPUT, "something else");
  BAD(onehop_group_alone(NULL), ONEHOP_BAD_INPUT, "null pointer");
  BAD(onehop_group_free(&nothing), ONEHOP_BAD_INPUT, "null pointer");
  BAD(onehop_allreduce(NULL, array, array, 1, ONEHOP_INT32, ONEHOP_SUM), ONEHOP_BAD_INPUT, "expected a group");
  BAD(onehop_allreduce(group, NULL, array, 1, ONEHOP_INT32, ONEHOP_SUM), ONEHOP_BAD_INPUT, "null pointer");
  BAD(onehop_allreduce(group, array, array, -1, ONEHOP_INT32, ONEHOP_SUM), ONEHOP_BAD_INPUT, "length");
  BAD(onehop_allreduce(group, array, array, INT64_MAX, ONEHOP_INT32, ONEHOP_SUM), ONEHOP_BAD_INPUT, "length");
  BAD(onehop_allreduce(group, array, array, INT64_MAX / 8, ONEHOP_INT8, ONEHOP_SUM), ONEHOP_BAD_INPUT, "machine has");
  BAD(onehop_scan(group, array, array, INT64_MAX / 128, ONEHOP_INT64, ONEHOP_SUM), ONEHOP_BAD_INPUT, "machine has");
  BAD(onehop_allreduce(group, array, array, 1, 99, ONEHOP_SUM), ONEHOP_BAD_INPUT, "type");
  BAD(onehop_allreduce(group, array, array, 1, ONEHOP_INT32, -1), ONEHOP_BAD_INPUT, "operator");
  BAD(onehop_broadcast(group, array, 1, ONEHOP_INT32, size), ONEHOP_BAD_INPUT, "root");
  BAD(onehop_reduce(group, array, array, 1, ONEHOP_INT32, ONEHOP_SUM, -1), ONEHOP_BAD_INPUT, "root");
  BAD(onehop_gather(group, array, 1, array, NULL, ONEHOP_INT32, size), ONEHOP_BAD_INPUT, "root");
  BAD(onehop_allgather(group, array, array, 0, lengths, ONEHOP_INT32), ONEHOP_BAD_INPUT, "length");
  BAD(onehop_exscan(group, array, array, 1, ONEHOP_INT32, ONEHOP_MIN), ONEHOP_BAD_INPUT, "neutral");
  BAD(onehop_group_from_mpi_handle(NULL, &nothing), ONEHOP_BAD_INPUT, "null pointer");
  if (size > 1) {
    BAD(onehop_allreduce(group, array, array, 1 + rank, ONEHOP_INT32, ONEHOP_SUM), ONEHOP_MISMATCH, "rank");
    BAD(onehop_reduce(group, array, array, 1, ONEHOP_INT32, ONEHOP_SUM, rank), ONEHOP_MISMATCH, "root");
    GOOD(onehop_group_set_timeout(group, 0.2));
    if (rank == 0) BAD(onehop_receive(group, array, 1, ONEHOP_INT32, 1, 77, NULL), ONEHOP_TIMEOUT, "tag 77");
    GOOD(onehop_group_set_timeout(group, 0));
    GOOD(onehop_group_barrier(group));
  }
}

#ifndef USE_MPI
static onehop_group* parts[2];

static void* make_plan(void* which) {
  onehop_group* const group = parts[*(int*)which];
  const struct timespec later = {0, 200000000};
  onehop_schedule* schedule = NULL;
  onehop_plan* plan = NULL;
  double numbers[64] = {0};
  void* arrays[] = {numbers};
  int64_t bytes = 0;
  if ((rank == 0) == (*(int*)which == 1)) nanosleep(&later, NULL);
  GOOD(onehop_schedule_allgather(size, size, sizeof(double), rank, &schedule));
  GOOD(onehop_schedule_array_bytes(schedule, 0, rank, &bytes));
  GOOD(onehop_plan_new(group, schedule, 1, arrays, &bytes, &plan));
  GOOD(onehop_plan_free(&plan));
  GOOD(onehop_schedule_free(&schedule));
  return NULL;
}

/* Two threads make the plans of two groups, on rank 0 in another order than on the other ranks. */
static void threads(onehop_group* group) {
  int which[2] = {0, 1};
  pthread_t all[2];
  for (int i = 0; i < 2; ++i) {
    GOOD(onehop_group_split(group, 0, 0, &parts[i]));
    GOOD(onehop_group_set_timeout(parts[i], 20));
  }
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&all[i], NULL, make_plan, &which[i]) == 0);
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(all[i], NULL) == 0);
  for (int i = 0; i < 2; ++i) GOOD(onehop_group_free(&parts[i]));
}
#endif

int main(int argc, char** argv) {
  onehop_group *group = NULL, *part = NULL, *alone = NULL;
  int number = -1;
#ifdef USE_MPI
  onehop_group* by_number = NULL;
  CHECK(onehop_group_from_mpi_fint(0, &group) == ONEHOP_ERROR);
  MPI_Init(&argc, &argv);
  GOOD(onehop_group_from_mpi(MPI_COMM_WORLD, &group));
  GOOD(onehop_group_from_mpi_fint(MPI_Comm_c2f(MPI_COMM_WORLD), &by_number));
  CHECK(onehop_group_from_mpi(MPI_COMM_NULL, &part) == ONEHOP_BAD_INPUT);
#else
  (void)argc, (void)argv;
  GOOD(onehop_group_world(&group));
  CHECK(onehop_group_from_mpi_fint(0, &part) == ONEHOP_ERROR);
#endif
  CHECK(onehop_interface_version() == ONEHOP_INTERFACE_VERSION && strlen(onehop_version()) >= 5);
  GOOD(onehop_group_rank(group, &rank));
  GOOD(onehop_group_size(group, &size));
  int8(group), int16(group), int32(group), int64(group), uint8(group), uint16(group), uint32(group), uint64(group);
  floats(group), doubles(group), float_complexes(group), double_complexes(group);
  movement(group);
  messages(group);
  halo(group);
  patterns(group);
#ifndef USE_MPI
  threads(group);
#endif
  GOOD(onehop_group_split(group, rank == 0 ? -1 : 1, 0, &part));
  CHECK((part == NULL) == (rank == 0));
  if (part != NULL) {
    GOOD(onehop_group_size(part, &number));
    CHECK(number == size - 1);
    GOOD(onehop_group_free(&part));
  }
  GOOD(onehop_group_alone(&alone));
  GOOD(onehop_group_size(alone, &number));
  CHECK(number == 1 && onehop_group_barrier(alone) == ONEHOP_SUCCESS);
  part = alone;
  GOOD(onehop_group_free(&alone));
  BAD(onehop_group_free(&part), ONEHOP_BAD_INPUT, "freed");
  errors(group);
  GOOD(onehop_group_free(&group));
#ifdef USE_MPI
  GOOD(onehop_group_free(&by_number));
  MPI_Finalize();
  BAD(onehop_group_from_mpi_fint(0, &group), ONEHOP_ERROR, "MPI_Finalize");
#endif
  if (failures == 0) printf("rank %d of %d is right\n", rank, size);
  return failures != 0;
}
