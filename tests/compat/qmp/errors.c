/* Errors that end the program. */
#include <stdint.h>

#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

#define HANDLE "expected a message handle that QMP_declare_... made, found "
#define MEMORY "expected a message memory that QMP_declare_..._msgmem made, found "
#define COMMUNICATOR "expected a communicator that QMP_comm_split made, found "

static int number;
static double pair[2];

static void begin_plainly(void) {
  static char* arguments[] = {"test", NULL};
  begin(1, arguments);
}

/* As ERROR and REFUSED, of a program that has begun. */
#define BEGUN(function, ranks, status, text) \
  static void function##_begun(void);        \
  ERROR(function, ranks, status, text) {     \
    begin_plainly();                         \
    function##_begun();                      \
  }                                          \
  static void function##_begun(void)
#define REFUSED_BEGUN(function, text, ...) REFUSED(function, text, begin_plainly(); __VA_ARGS__)

static QMP_msghandle_t to_oneself(int sends) {
  QMP_msgmem_t mem = QMP_declare_msgmem(&number, sizeof number);
  return sends ? QMP_declare_send_to(mem, 0, 0) : QMP_declare_receive_from(mem, 0, 0);
}

REFUSED(too_early, "expected QMP_init_msg_passing to be called before", QMP_barrier());

BEGUN(wrong_node, 2, 1, "expected a node from 0 to 1, found 2") {
  QMP_declare_send_to(QMP_declare_msgmem(&number, sizeof number), all_ranks(), 0);
}

BEGUN(started_twice, 1, 1, "QMP_start: expected a handle that is not under way") {
  QMP_msghandle_t handle = QMP_declare_receive_from(QMP_declare_msgmem(&number, sizeof number), 0, 0);
  QMP_start(handle);
  QMP_start(handle);
}

REFUSED_BEGUN(no_topology, "expected a communicator with a logical topology",
              QMP_declare_send_relative(QMP_declare_msgmem(&number, sizeof number), 0, 1, 0));

ERROR(too_long, 2, 1, "rank 0 receives 4 bytes from rank 1, which sent 8") {
  static int numbers[2];
  begin_plainly();
  QMP_msgmem_t mem = QMP_declare_msgmem(numbers, (my_rank() + 1) * sizeof(int));
  QMP_msghandle_t handle = my_rank() == 0 ? QMP_declare_receive_from(mem, 1, 0) : QMP_declare_send_to(mem, 0, 0);
  QMP_start(handle);
  QMP_wait(handle);
}

BEGUN(part_of_another, 1, 1, "QMP_free_msghandle: expected a handle by itself") {
  QMP_msghandle_t handle = QMP_declare_receive_from(QMP_declare_msgmem(&number, sizeof number), 0, 0);
  QMP_declare_multiple(&handle, 1);
  QMP_free_msghandle(handle);
}

REFUSED_BEGUN(started_nothing, "QMP_start: " HANDLE "a null pointer", QMP_start(NULL));

BEGUN(freed_twice, 1, 1, "QMP_free_msghandle: " HANDLE "one that was freed") {
  QMP_msghandle_t handle = to_oneself(1);
  QMP_free_msghandle(handle);
  QMP_free_msghandle(handle);
}

BEGUN(started_freed, 1, 1, "QMP_start: " HANDLE "one that was freed") {
  QMP_msghandle_t handle = to_oneself(1);
  QMP_free_msghandle(handle);
  QMP_start(handle);
}

BEGUN(freed_with_its_parent, 1, 1, "QMP_wait: " HANDLE "one that was freed") {
  QMP_msghandle_t handle = to_oneself(1);
  QMP_free_msghandle(QMP_declare_multiple(&handle, 1));
  QMP_wait(handle);
}

BEGUN(freed_under_way, 1, 1, "QMP_free_msghandle: expected a handle that is not under way") {
  QMP_msghandle_t handle = to_oneself(0);
  QMP_start(handle);
  QMP_free_msghandle(handle);
}

BEGUN(one_twice, 1, 1, "QMP_declare_multiple: expected every handle once") {
  QMP_msghandle_t handles[2] = {to_oneself(0), NULL};
  handles[1] = handles[0];
  QMP_declare_multiple(handles, 2);
}

BEGUN(negative_handles, 1, 1, "QMP_declare_multiple: expected a number of 0 or more, found -1") {
  QMP_msghandle_t handle = to_oneself(0);
  QMP_declare_multiple(&handle, -1);
}

REFUSED_BEGUN(no_handles, "QMP_declare_send_recv_pairs: expected memory of 16 bytes",
              QMP_declare_send_recv_pairs(NULL, 2));
REFUSED_BEGUN(waited_for_no_handles, "QMP_wait_all: expected memory of 8 bytes", QMP_wait_all(NULL, 1));

BEGUN(not_a_handle, 1, 1, "QMP_start: " HANDLE "something else") { /* but a message memory */
  QMP_start((QMP_msghandle_t)QMP_declare_msgmem(&number, sizeof number));
}

BEGUN(memory_freed_twice, 1, 1, "QMP_free_msgmem: " MEMORY "one that was freed") {
  QMP_msgmem_t mem = QMP_declare_msgmem(&number, sizeof number);
  QMP_free_msgmem(mem);
  QMP_free_msgmem(mem);
}

BEGUN(started_in_freed_memory, 1, 1,
      "QMP_start: expected a message in memory of QMP_allocate_memory, found one whose") {
  QMP_mem_t* mem = QMP_allocate_memory(1 << 20);
  QMP_msghandle_t handle = QMP_declare_send_to(QMP_declare_msgmem(QMP_get_memory_pointer(mem), 1 << 20), 0, 0);
  QMP_free_memory(mem);
  QMP_start(handle);
}

BEGUN(freed_memory, 1, 1, "QMP_comm_declare_send_to: " MEMORY "one that was freed") {
  QMP_msgmem_t mem = QMP_declare_msgmem(&number, sizeof number);
  QMP_free_msgmem(mem);
  QMP_declare_send_to(mem, 0, 0);
}

REFUSED_BEGUN(no_memory, "QMP_comm_declare_send_to: " MEMORY "a null pointer", QMP_declare_send_to(NULL, 0, 0));
REFUSED_BEGUN(no_address, "QMP_start: expected memory of 4 bytes, found a null pointer",
              QMP_start(QMP_declare_receive_from(QMP_declare_msgmem(NULL, 4), 0, 0)));
REFUSED_BEGUN(changed_to_no_address, "QMP_change_address: expected memory of 4 bytes, found",
              QMP_change_address(to_oneself(0), NULL));

ERROR(negative_addresses, 1, 1, "expected a number of 0 or more, found -1") {
  void* at[1] = {&number};
  begin_plainly();
  QMP_msghandle_t handle = to_oneself(0);
  QMP_change_address_multiple(QMP_declare_multiple(&handle, 1), at, -1);
}

ERROR(negative_node, 2, 1, "expected a node from 0 to 1, found -1") {
  begin_plainly();
  QMP_declare_receive_from(QMP_declare_msgmem(&number, 4), -1, 0);
}

static void declare_line(void) {
  const int dims[1] = {all_ranks()};
  begin_plainly();
  QMP_declare_logical_topology(dims, 1);
}

REFUSED(wrong_axis, "expected an axis from 0 to 0, found 1", declare_line();
        QMP_declare_send_relative(QMP_declare_msgmem(&number, 4), 1, 1, 0));

ERROR(coordinates_of_wrong_node, 1, 1, "expected a node from 0 to 0, found 2") {
  int coords[1];
  declare_line();
  QMP_get_logical_coordinates_from2(coords, 2);
}

REFUSED(no_coordinates, "expected memory of 4 bytes, found a null pointer", declare_line();
        QMP_get_node_number_from(NULL));

ERROR(wrong_coordinates, 1, 1, "expected a coordinate from 0 to 0, found -1") {
  const int coords[1] = {-1};
  declare_line();
  QMP_get_node_number_from(coords);
}

REFUSED_BEGUN(no_dimensions, "expected memory of 8 bytes, found a null pointer", QMP_declare_logical_topology(NULL, 2));
REFUSED_BEGUN(no_lattice, "QMP_layout_grid: expected memory of 16 bytes", QMP_layout_grid(NULL, 4));
REFUSED_BEGUN(no_communicator, "QMP_comm_barrier: " COMMUNICATOR "a null pointer", QMP_comm_barrier(NULL));

ERROR(freed_communicator, 1, 1, "QMP_comm_barrier: " COMMUNICATOR "one that was freed") {
  QMP_comm_t comm;
  begin_plainly();
  QMP_comm_split(QMP_comm_get_default(), 0, 0, &comm);
  QMP_comm_free(comm);
  QMP_comm_barrier(comm);
}

ERROR(communicator_freed_twice, 1, 1, "QMP_comm_free: " COMMUNICATOR "one that was freed") {
  QMP_comm_t comm;
  begin_plainly();
  QMP_comm_split(QMP_comm_get_default(), 0, 0, &comm);
  QMP_comm_free(comm);
  QMP_comm_free(comm);
}

REFUSED_BEGUN(default_freed, "QMP_comm_free: expected a communicator that is not in use",
              QMP_comm_free(QMP_comm_get_default()));

ERROR(communicator_after_finalize, 1, 1,
      "QMP_comm_barrier: " COMMUNICATOR "one that was freed") { /* and after a second beginning */
  begin_plainly();
  QMP_comm_t comm = QMP_comm_get_default();
  QMP_finalize_msg_passing();
  begin_plainly();
  QMP_comm_barrier(comm);
}

REFUSED_BEGUN(nowhere_to_split, "QMP_comm_split: expected memory of 8 bytes",
              QMP_comm_split(QMP_comm_get_default(), 0, 0, NULL));

ERROR(negative_color, 1, 1, "expected a color of 0 or more, found -1") {
  QMP_comm_t comm;
  begin_plainly();
  QMP_comm_split(QMP_comm_get_default(), -1, 0, &comm);
}

REFUSED_BEGUN(no_value, "QMP_comm_sum_double: expected memory of 8 bytes", QMP_sum_double(NULL));
REFUSED_BEGUN(value_between, "QMP_comm_sum_double: expected memory at a multiple of 8 bytes, found address ",
              QMP_sum_double((double*)((char*)pair + 4)));
REFUSED_BEGUN(values_between, "QMP_comm_sum_float_array: expected memory at a multiple of 4 bytes, found address ",
              QMP_sum_float_array((float*)((char*)pair + 1), 3));
REFUSED_BEGUN(no_values, "QMP_comm_sum_float_array: expected memory of 12 bytes", QMP_sum_float_array(NULL, 3));

ERROR(negative_values, 1, 1, "expected a number of 0 or more, found -1") {
  double x = 0;
  begin_plainly();
  QMP_sum_double_array(&x, -1);
}

ERROR(different_lengths, 2, 1, "bytes from rank") { /* one rank would add what is not there */
  double x[3] = {1, 2, 3};
  begin_plainly();
  QMP_sum_double_array(x, my_rank() == 0 ? 3 : 2);
}

ERROR(different_operations, 2, 1, "bytes from rank") {
  double x = 1;
  begin_plainly();
  my_rank() == 0 ? QMP_barrier() : QMP_sum_double(&x);
  QMP_barrier();
}

ERROR(different_reductions, 2, 1, "expected the same operation on all nodes, found another") { /* of as many bytes */
  double x = 1;
  begin_plainly();
  my_rank() == 0 ? QMP_max_double(&x) : QMP_sum_double(&x);
}

static void add(void* inout, void* in) { *(int*)inout += *(int*)in; }
static void multiply(void* inout, void* in) { *(int*)inout *= *(int*)in; }

ERROR(different_functions, 2, 1, "expected the same operation on all nodes, found another") {
  int x = 3;
  begin_plainly();
  QMP_binary_reduction(&x, sizeof x, my_rank() == 0 ? add : multiply);
}

ERROR(different_sizes, 2, 1, "QMP_comm_binary_reduction: rank") {
  int x[2] = {3, 4};
  begin_plainly();
  QMP_binary_reduction(x, my_rank() == 0 ? 8 : 4, add);
}

ERROR(reduction_and_broadcast, 2, 1, "QMP_comm_binary_reduction: rank 1 receives") {
  int x = 3;
  begin_plainly();
  my_rank() == 0 ? QMP_broadcast(&x, sizeof x) : QMP_binary_reduction(&x, sizeof x, add);
}

ERROR(different_types, 2, 1, "expected the same operation on all nodes, found another") {
  double x = 1;
  unsigned long bits = 1;
  begin_plainly();
  my_rank() == 0 ? QMP_sum_double(&x) : QMP_sum_uint64_t((uint64_t*)&bits);
}

ERROR(different_broadcasts, 2, 1, "rank 1 receives 24 bytes from rank 0, which sent 16") {
  double x[3] = {1, 2, 3};
  begin_plainly();
  QMP_broadcast(x, my_rank() == 0 ? 16 : 24);
  QMP_barrier();
}

ERROR(negative_count, 2, 1, "QMP_comm_alltoall: expected a number of 0 or more, found -1") {
  char bytes[4];
  begin_plainly();
  QMP_comm_alltoall(QMP_comm_get_default(), bytes, bytes, -1);
}

ERROR(nothing_to_send, 1, 1, "QMP_comm_alltoall: expected memory of 4 bytes") {
  char bytes[4];
  begin_plainly();
  QMP_comm_alltoall(QMP_comm_get_default(), bytes, NULL, 4);
}

REFUSED_BEGUN(no_function, "QMP_comm_binary_reduction: expected a function",
              QMP_binary_reduction(&number, sizeof number, NULL));
REFUSED_BEGUN(endless_reduction, "QMP_comm_broadcast: expected at most the", QMP_broadcast(&number, SIZE_MAX));

REFUSED(no_stream, "QMP_fprintf: expected a stream and a format", begin_plainly(); QMP_fprintf(NULL, "x"));
REFUSED(no_format, "QMP_printf: expected a stream and a format", begin_plainly(); QMP_printf(NULL));

ERROR(wrong_level, 1, 1, "QMP_init_msg_passing: expected a thread level from 0 to 3, found 7") {
  static char* arguments[] = {"test", NULL};
  char** argv = arguments;
  int argc = 1;
  QMP_init_msg_passing(&argc, &argv, (QMP_thread_level_t)7, NULL);
}

ERROR(begun_twice, 1, 1, "QMP_init_msg_passing: expected to be called once") {
  static char* arguments[] = {"test", NULL};
  char** argv = arguments;
  int argc = 1;
  QMP_thread_level_t level;
  begin_plainly();
  QMP_init_msg_passing(&argc, &argv, QMP_THREAD_SINGLE, &level);
}

ERROR(wrong_argument, 1, 1, "-qmp-job: expected numbers below 2^31, found '2147483648'") {
  static char* arguments[] = {"test", "-qmp-job", "2147483648", NULL};
  begin(3, arguments);
}

ERROR(too_many_jobs, 1, 1, "-qmp-job: expected 1 numbers, as -qmp-geom has, found 2") {
  static char* arguments[] = {"test", "-qmp-geom", "1", "-qmp-job", "1", "1", NULL};
  begin(6, arguments);
}

REFUSED(finalized_too_early, "QMP_finalize_msg_passing: expected QMP_init_msg_passing", QMP_finalize_msg_passing());

BEGUN(started_after_finalize, 1, 1, "QMP_start: expected QMP_init_msg_passing") {
  QMP_msghandle_t handle = to_oneself(1);
  QMP_finalize_msg_passing();
  QMP_start(handle);
}

REFUSED_BEGUN(finalized_twice, "QMP_finalize_msg_passing: expected QMP_init_msg_passing", QMP_finalize_msg_passing();
              QMP_finalize_msg_passing());

static QMP_msghandle_t of_parent;
static void start_of_parent(void) { QMP_start(of_parent); }

REFUSED_BEGUN(started_by_child, "was forked from", of_parent = to_oneself(1); in_child(start_of_parent));

static void barrier(void) { QMP_barrier(); }

BEGUN(barrier_in_child, 2, 1, "was forked from") { in_child(barrier); }

ERROR(never_sent, 2, 1, "waited") {
  setenv("ONEHOP_TIMEOUT", "1", 1);
  begin_plainly();
  QMP_msghandle_t handle = QMP_declare_receive_from(QMP_declare_msgmem(&number, 4), 1 - my_rank(), 0);
  QMP_start(handle);
  QMP_wait(handle);
}

ERROR(aborted_without_words, 1, 43, "no message") { QMP_abort_string(43, NULL); }

BEGUN(aborted, 1, 42, "error 42") { QMP_abort(42); }

ERROR(aborted_with_words, 1, 43, "words of the program") { QMP_abort_string(43, "words of the program"); }

BEGUN(lost_peer, 2, 3, "rank 1") {
  if (my_rank() == 1) _exit(0);
  QMP_barrier();
}
