/* Nodes, topologies, lattices. */
#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

void machine(void) {
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
  CHECK(strlen(QMP_error_string((QMP_status_t)-1)) > 0); /* of no value of the type */
  CHECK(QMP_get_error_number(NULL) == QMP_SUCCESS);
  CHECK(strcmp(QMP_get_error_string(NULL), QMP_error_string(QMP_SUCCESS)) == 0);
  CHECK(QMP_printf("%d", 1234) == 4 && QMP_info("%s", "ab") == 2 && QMP_fprintf(stdout, "x") == 1);
  CHECK(QMP_error("%s", "this line is part of the test") > 0);
  void* mpi;
  CHECK(QMP_get_hidden_comm(QMP_comm_get_default(), &mpi) == QMP_NOTSUPPORTED && mpi == NULL);
  CHECK(QMP_get_mpi_comm(QMP_comm_get_default(), &mpi) == QMP_NOTSUPPORTED);
}

void topology(void) {
  const int n = all_ranks();
  const int sizes[3] = {n % 2 == 0 ? 2 : 1, 1, n % 2 == 0 ? n / 2 : n};
  const int wrong[1] = {n + 1};
  QMP_comm_t comm;
  CHECK(QMP_comm_split(QMP_comm_get_default(), 0, my_rank(), &comm) == QMP_SUCCESS);
  CHECK(QMP_comm_declare_logical_topology(comm, wrong, 1) == QMP_INVALID_ARG);
  /* Nothing behind the program's numbers is read. */
  CHECK(QMP_comm_declare_logical_topology(comm, wrong, 1 << 30) == QMP_INVALID_ARG);
  CHECK(QMP_layout_grid(wrong, 1 << 30) == QMP_INVALID_ARG);
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

/* The default communicator's topology, which QMP chooses for a lattice. */
void layout(void) {
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
  CHECK(QMP_declare_logical_topology_map(again, 1, map, 65) == QMP_INVALID_ARG);
  CHECK(QMP_declare_logical_topology_map(again, 1, map, 1) == QMP_SUCCESS);
  CHECK(QMP_comm_set_default(before) == QMP_SUCCESS && QMP_comm_free(comm) == QMP_SUCCESS);
  CHECK(QMP_comm_set_job(QMP_comm_get_job()) == QMP_SUCCESS);
  CHECK(QMP_comm_set_allocated(QMP_comm_get_allocated()) == QMP_SUCCESS);
}
