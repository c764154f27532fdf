/* Errors that end the program. */
#include <unistd.h>

#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

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

int made_qmp_error(int argc, char** argv) { return made_error(argc, argv, errors, sizeof errors / sizeof errors[0]); }
