/* A sum by QMP over all ranks: tools/wheel_test.sh compiles it against the library of a wheel. */
#include <qmp.h>
#include <stdio.h>

int main(int argc, char** argv) {
  QMP_thread_level_t provided;
  if (QMP_init_msg_passing(&argc, &argv, QMP_THREAD_SINGLE, &provided) != QMP_SUCCESS) return 1;
  double sum = QMP_get_node_number() + 1;
  const int nodes = QMP_get_number_of_nodes();
  const int failed = QMP_sum_double(&sum) != QMP_SUCCESS || sum != nodes * (nodes + 1) / 2;
  if (QMP_get_node_number() == 0) printf("QMP on %d ranks: sum %g\n", nodes, sum);
  QMP_finalize_msg_passing();
  return failed;
}
