/* Every function of QMP: the parts are in qmp/. */
#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

void begin(int argc, char** argv) {
  QMP_thread_level_t provided;
  CHECK(!QMP_is_initialized());
  CHECK(QMP_init_msg_passing(&argc, &argv, QMP_THREAD_MULTIPLE, &provided) == QMP_SUCCESS);
  CHECK(QMP_is_initialized() && provided == QMP_THREAD_SERIALIZED);
}

int main(int argc, char** argv) {
  if (made_error(argc, argv)) return 0;
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
  nested_reduction();
  ordered_reduction();
  halves();
  CHECK(QMP_barrier() == QMP_SUCCESS);
  QMP_finalize_msg_passing();
  CHECK(!QMP_is_initialized());
  return 0;
}
