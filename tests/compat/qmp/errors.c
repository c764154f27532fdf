/* Errors that end the program. */
#include <stdint.h>

#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

static int number;

static void begin_plainly(void) {
  static char* arguments[] = {"test", NULL};
  begin(1, arguments);
}

static QMP_msghandle_t to_oneself(int sends) {
  QMP_msgmem_t mem = QMP_declare_msgmem(&number, sizeof number);
  return sends ? QMP_declare_send_to(mem, 0, 0) : QMP_declare_receive_from(mem, 0, 0);
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

static void started_nothing(void) {
  begin_plainly();
  QMP_start(NULL);
}

static void freed_twice(void) {
  begin_plainly();
  QMP_msghandle_t handle = to_oneself(1);
  QMP_free_msghandle(handle);
  QMP_free_msghandle(handle);
}

static void started_freed(void) {
  begin_plainly();
  QMP_msghandle_t handle = to_oneself(1);
  QMP_free_msghandle(handle);
  QMP_start(handle);
}

static void freed_with_its_parent(void) {
  begin_plainly();
  QMP_msghandle_t handle = to_oneself(1);
  QMP_free_msghandle(QMP_declare_multiple(&handle, 1));
  QMP_wait(handle);
}

static void freed_under_way(void) {
  begin_plainly();
  QMP_msghandle_t handle = to_oneself(0);
  QMP_start(handle);
  QMP_free_msghandle(handle);
}

static void one_twice(void) {
  begin_plainly();
  QMP_msghandle_t handles[2] = {to_oneself(0), NULL};
  handles[1] = handles[0];
  QMP_declare_multiple(handles, 2);
}

static void negative_handles(void) {
  begin_plainly();
  QMP_msghandle_t handle = to_oneself(0);
  QMP_declare_multiple(&handle, -1);
}

static void no_handles(void) {
  begin_plainly();
  QMP_declare_send_recv_pairs(NULL, 2);
}

static void waited_for_no_handles(void) {
  begin_plainly();
  QMP_wait_all(NULL, 1);
}

static void not_a_handle(void) { /* but a message memory */
  begin_plainly();
  QMP_start((QMP_msghandle_t)QMP_declare_msgmem(&number, sizeof number));
}

static void memory_freed_twice(void) {
  begin_plainly();
  QMP_msgmem_t mem = QMP_declare_msgmem(&number, sizeof number);
  QMP_free_msgmem(mem);
  QMP_free_msgmem(mem);
}

static void freed_memory(void) {
  begin_plainly();
  QMP_msgmem_t mem = QMP_declare_msgmem(&number, sizeof number);
  QMP_free_msgmem(mem);
  QMP_declare_send_to(mem, 0, 0);
}

static void no_memory(void) {
  begin_plainly();
  QMP_declare_send_to(NULL, 0, 0);
}

static void no_address(void) {
  begin_plainly();
  QMP_start(QMP_declare_receive_from(QMP_declare_msgmem(NULL, 4), 0, 0));
}

static void changed_to_no_address(void) {
  begin_plainly();
  QMP_change_address(to_oneself(0), NULL);
}

static void negative_addresses(void) {
  void* at[1] = {&number};
  begin_plainly();
  QMP_msghandle_t handle = to_oneself(0);
  QMP_change_address_multiple(QMP_declare_multiple(&handle, 1), at, -1);
}

static void negative_node(void) {
  begin_plainly();
  QMP_declare_receive_from(QMP_declare_msgmem(&number, 4), -1, 0);
}

static void declare_line(void) {
  const int dims[1] = {all_ranks()};
  begin_plainly();
  QMP_declare_logical_topology(dims, 1);
}

static void wrong_axis(void) {
  declare_line();
  QMP_declare_send_relative(QMP_declare_msgmem(&number, 4), 1, 1, 0);
}

static void coordinates_of_wrong_node(void) {
  int coords[1];
  declare_line();
  QMP_get_logical_coordinates_from2(coords, 2);
}

static void no_coordinates(void) {
  declare_line();
  QMP_get_node_number_from(NULL);
}

static void wrong_coordinates(void) {
  const int coords[1] = {-1};
  declare_line();
  QMP_get_node_number_from(coords);
}

static void no_dimensions(void) {
  begin_plainly();
  QMP_declare_logical_topology(NULL, 2);
}

static void no_lattice(void) {
  begin_plainly();
  QMP_layout_grid(NULL, 4);
}

static void no_communicator(void) {
  begin_plainly();
  QMP_comm_barrier(NULL);
}

static void freed_communicator(void) {
  QMP_comm_t comm;
  begin_plainly();
  QMP_comm_split(QMP_comm_get_default(), 0, 0, &comm);
  QMP_comm_free(comm);
  QMP_comm_barrier(comm);
}

static void communicator_freed_twice(void) {
  QMP_comm_t comm;
  begin_plainly();
  QMP_comm_split(QMP_comm_get_default(), 0, 0, &comm);
  QMP_comm_free(comm);
  QMP_comm_free(comm);
}

static void default_freed(void) {
  begin_plainly();
  QMP_comm_free(QMP_comm_get_default());
}

static void communicator_after_finalize(void) { /* and after a second beginning */
  begin_plainly();
  QMP_comm_t comm = QMP_comm_get_default();
  QMP_finalize_msg_passing();
  begin_plainly();
  QMP_comm_barrier(comm);
}

static void nowhere_to_split(void) {
  begin_plainly();
  QMP_comm_split(QMP_comm_get_default(), 0, 0, NULL);
}

static void negative_color(void) {
  QMP_comm_t comm;
  begin_plainly();
  QMP_comm_split(QMP_comm_get_default(), -1, 0, &comm);
}

static void no_value(void) {
  begin_plainly();
  QMP_sum_double(NULL);
}

static void no_values(void) {
  begin_plainly();
  QMP_sum_float_array(NULL, 3);
}

static void negative_values(void) {
  double x = 0;
  begin_plainly();
  QMP_sum_double_array(&x, -1);
}

static void different_lengths(void) { /* one rank would add what is not there */
  double x[3] = {1, 2, 3};
  begin_plainly();
  QMP_sum_double_array(x, my_rank() == 0 ? 3 : 2);
}

static void different_operations(void) {
  double x = 1;
  begin_plainly();
  my_rank() == 0 ? QMP_barrier() : QMP_sum_double(&x);
  QMP_barrier();
}

static void different_reductions(void) { /* of as many bytes */
  double x = 1;
  begin_plainly();
  my_rank() == 0 ? QMP_max_double(&x) : QMP_sum_double(&x);
}

static void add(void* inout, void* in) { *(int*)inout += *(int*)in; }
static void multiply(void* inout, void* in) { *(int*)inout *= *(int*)in; }

static void different_functions(void) {
  int x = 3;
  begin_plainly();
  QMP_binary_reduction(&x, sizeof x, my_rank() == 0 ? add : multiply);
}

static void different_sizes(void) {
  int x[2] = {3, 4};
  begin_plainly();
  QMP_binary_reduction(x, my_rank() == 0 ? 8 : 4, add);
}

static void reduction_and_broadcast(void) {
  int x = 3;
  begin_plainly();
  my_rank() == 0 ? QMP_broadcast(&x, sizeof x) : QMP_binary_reduction(&x, sizeof x, add);
}

static void different_types(void) {
  double x = 1;
  unsigned long bits = 1;
  begin_plainly();
  my_rank() == 0 ? QMP_sum_double(&x) : QMP_sum_uint64_t((uint64_t*)&bits);
}

static void different_broadcasts(void) {
  double x[3] = {1, 2, 3};
  begin_plainly();
  QMP_broadcast(x, my_rank() == 0 ? 16 : 24);
  QMP_barrier();
}

static void negative_count(void) {
  char bytes[4];
  begin_plainly();
  QMP_comm_alltoall(QMP_comm_get_default(), bytes, bytes, -1);
}

static void nothing_to_send(void) {
  char bytes[4];
  begin_plainly();
  QMP_comm_alltoall(QMP_comm_get_default(), bytes, NULL, 4);
}

static void no_function(void) {
  begin_plainly();
  QMP_binary_reduction(&number, sizeof number, NULL);
}

static void endless_reduction(void) {
  begin_plainly();
  QMP_broadcast(&number, SIZE_MAX);
}

static void begun_twice(void) {
  static char* arguments[] = {"test", NULL};
  char** argv = arguments;
  int argc = 1;
  QMP_thread_level_t level;
  begin_plainly();
  QMP_init_msg_passing(&argc, &argv, QMP_THREAD_SINGLE, &level);
}

static void wrong_argument(void) {
  static char* arguments[] = {"test", "-qmp-job", "2147483648", NULL};
  begin(3, arguments);
}

static void too_many_jobs(void) {
  static char* arguments[] = {"test", "-qmp-geom", "1", "-qmp-job", "1", "1", NULL};
  begin(6, arguments);
}

static void finalized_too_early(void) { QMP_finalize_msg_passing(); }

static void started_after_finalize(void) {
  begin_plainly();
  QMP_msghandle_t handle = to_oneself(1);
  QMP_finalize_msg_passing();
  QMP_start(handle);
}

static void finalized_twice(void) {
  begin_plainly();
  QMP_finalize_msg_passing();
  QMP_finalize_msg_passing();
}

static QMP_msghandle_t of_parent;
static void start_of_parent(void) { QMP_start(of_parent); }

static void started_by_child(void) {
  begin_plainly();
  of_parent = to_oneself(1);
  in_child(start_of_parent);
}

static void barrier(void) { QMP_barrier(); }

static void barrier_in_child(void) {
  begin_plainly();
  in_child(barrier);
}

static void never_sent(void) {
  setenv("ONEHOP_TIMEOUT", "1", 1);
  begin_plainly();
  QMP_msghandle_t handle = QMP_declare_receive_from(QMP_declare_msgmem(&number, 4), 1 - my_rank(), 0);
  QMP_start(handle);
  QMP_wait(handle);
}

static void aborted_without_words(void) { QMP_abort_string(43, NULL); }

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

#define HANDLE "expected a message handle that QMP_declare_... made, found "
#define MEMORY "expected a message memory that QMP_declare_..._msgmem made, found "
#define COMMUNICATOR "expected a communicator that QMP_comm_split made, found "

static const struct error_case errors[] = {
    {"early", 1, 1, "expected QMP_init_msg_passing to be called before", too_early},
    {"node", 2, 1, "expected a node from 0 to 1, found 2", wrong_node},
    {"negative_node", 2, 1, "expected a node from 0 to 1, found -1", negative_node},
    {"twice", 1, 1, "QMP_start: expected a handle that is not under way", started_twice},
    {"topology", 1, 1, "expected a communicator with a logical topology", no_topology},
    {"long", 2, 1, "rank 0 receives 4 bytes from rank 1, which sent 8", too_long},
    {"part", 1, 1, "QMP_free_msghandle: expected a handle by itself", part_of_another},
    {"started_nothing", 1, 1, "QMP_start: " HANDLE "a null pointer", started_nothing},
    {"freed_twice", 1, 1, "QMP_free_msghandle: " HANDLE "one that was freed", freed_twice},
    {"started_freed", 1, 1, "QMP_start: " HANDLE "one that was freed", started_freed},
    {"freed_with_its_parent", 1, 1, "QMP_wait: " HANDLE "one that was freed", freed_with_its_parent},
    {"freed_under_way", 1, 1, "QMP_free_msghandle: expected a handle that is not under way", freed_under_way},
    {"one_twice", 1, 1, "QMP_declare_multiple: expected every handle once", one_twice},
    {"negative_handles", 1, 1, "QMP_declare_multiple: expected a number of 0 or more, found -1", negative_handles},
    {"no_handles", 1, 1, "QMP_declare_send_recv_pairs: expected memory of 16 bytes", no_handles},
    {"waited_for_no_handles", 1, 1, "QMP_wait_all: expected memory of 8 bytes", waited_for_no_handles},
    {"not_a_handle", 1, 1, "QMP_start: " HANDLE "something else", not_a_handle},
    {"memory_freed_twice", 1, 1, "QMP_free_msgmem: " MEMORY "one that was freed", memory_freed_twice},
    {"freed_memory", 1, 1, "QMP_comm_declare_send_to: " MEMORY "one that was freed", freed_memory},
    {"no_memory", 1, 1, "QMP_comm_declare_send_to: " MEMORY "a null pointer", no_memory},
    {"no_address", 1, 1, "QMP_start: expected memory of 4 bytes, found a null pointer", no_address},
    {"changed_to_no_address", 1, 1, "QMP_change_address: expected memory of 4 bytes, found", changed_to_no_address},
    {"negative_addresses", 1, 1, "expected a number of 0 or more, found -1", negative_addresses},
    {"wrong_axis", 1, 1, "expected an axis from 0 to 0, found 1", wrong_axis},
    {"coordinates_of_wrong_node", 1, 1, "expected a node from 0 to 0, found 2", coordinates_of_wrong_node},
    {"no_coordinates", 1, 1, "expected memory of 4 bytes, found a null pointer", no_coordinates},
    {"wrong_coordinates", 1, 1, "expected a coordinate from 0 to 0, found -1", wrong_coordinates},
    {"no_dimensions", 1, 1, "expected memory of 8 bytes, found a null pointer", no_dimensions},
    {"no_lattice", 1, 1, "QMP_layout_grid: expected memory of 16 bytes", no_lattice},
    {"no_communicator", 1, 1, "QMP_comm_barrier: " COMMUNICATOR "a null pointer", no_communicator},
    {"freed_communicator", 1, 1, "QMP_comm_barrier: " COMMUNICATOR "one that was freed", freed_communicator},
    {"communicator_freed_twice", 1, 1, "QMP_comm_free: " COMMUNICATOR "one that was freed", communicator_freed_twice},
    {"default_freed", 1, 1, "QMP_comm_free: expected a communicator that is not in use", default_freed},
    {"after_finalize", 1, 1, "QMP_comm_barrier: " COMMUNICATOR "one that was freed", communicator_after_finalize},
    {"nowhere_to_split", 1, 1, "QMP_comm_split: expected memory of 8 bytes", nowhere_to_split},
    {"negative_color", 1, 1, "expected a color of 0 or more, found -1", negative_color},
    {"no_value", 1, 1, "QMP_comm_sum_double: expected memory of 8 bytes", no_value},
    {"no_values", 1, 1, "QMP_comm_sum_float_array: expected memory of 12 bytes", no_values},
    {"negative_values", 1, 1, "expected a number of 0 or more, found -1", negative_values},
    {"different_lengths", 2, 1, "bytes from rank", different_lengths},
    {"different_operations", 2, 1, "bytes from rank", different_operations},
    {"different_reductions", 2, 1, "expected the same operation on all nodes, found another", different_reductions},
    {"different_functions", 2, 1, "expected the same operation on all nodes, found another", different_functions},
    {"different_sizes", 2, 1, "QMP_comm_binary_reduction: rank", different_sizes},
    {"reduction_and_broadcast", 2, 1, "QMP_comm_binary_reduction: rank 1 receives", reduction_and_broadcast},
    {"different_types", 2, 1, "expected the same operation on all nodes, found another", different_types},
    {"different_broadcasts", 2, 1, "rank 1 receives 24 bytes from rank 0, which sent 16", different_broadcasts},
    {"negative_count", 1, 1, "QMP_comm_alltoall: expected a number of 0 or more", negative_count},
    {"nothing_to_send", 1, 1, "QMP_comm_alltoall: expected memory of 4 bytes", nothing_to_send},
    {"no_function", 1, 1, "QMP_comm_binary_reduction: expected a function", no_function},
    {"endless_reduction", 1, 1, "QMP_comm_broadcast: expected at most the", endless_reduction},
    {"begun_twice", 1, 1, "QMP_init_msg_passing: expected to be called once", begun_twice},
    {"wrong_argument", 1, 1, "-qmp-job: expected numbers below 2^31, found '2147483648'", wrong_argument},
    {"too_many_jobs", 1, 1, "-qmp-job: expected 1 numbers, as -qmp-geom has, found 2", too_many_jobs},
    {"finalized_too_early", 1, 1, "QMP_finalize_msg_passing: expected QMP_init_msg_passing", finalized_too_early},
    {"started_after_finalize", 1, 1, "QMP_start: expected QMP_init_msg_passing", started_after_finalize},
    {"finalized_twice", 1, 1, "QMP_finalize_msg_passing: expected QMP_init_msg_passing", finalized_twice},
    {"started_by_child", 1, 1, "was forked from", started_by_child},
    {"barrier_in_child", 2, 1, "was forked from", barrier_in_child},
    {"never_sent", 2, 1, "waited", never_sent},
    {"abort", 1, 42, "error 42", aborted},
    {"abort_string", 1, 43, "words of the program", aborted_with_words},
    {"abort_without_words", 1, 43, "no message", aborted_without_words},
    {"lost", 2, 3, "rank 1", lost_peer},
};

int made_qmp_error(int argc, char** argv) {
  return made_error(argc, argv, errors, sizeof errors / sizeof errors[0]) && made_qmp_memory_error(argc, argv);
}
