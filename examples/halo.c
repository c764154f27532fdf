/* Ghost layers of a three-dimensional array. Try: cc halo.c -lonehop_c -o halo && onehop launch -n 2 ./halo */
#include <onehop.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code) {
  if (code == ONEHOP_SUCCESS) return;
  fprintf(stderr, "%s\n", onehop_error_message());
  exit(code);
}

int main(void) {
  onehop_group* group;
  int rank, size;
  check(onehop_group_world(&group));
  check(onehop_group_rank(group, &rank));
  check(onehop_group_size(group, &size));

  const int64_t extents[3] = {128, 64, 64};
  const int grid[3] = {size, 1, 1}, periodic[3] = {1, 1, 1};
  onehop_halo* halo;
  check(onehop_halo_new(3, extents, grid, &halo)); /* one ghost layer at each side */
  check(onehop_halo_set_periodic(halo, periodic));
  int64_t shape[3], bytes, sent;
  check(onehop_halo_block(halo, rank, NULL, NULL, shape));
  onehop_schedule* schedule;
  check(onehop_halo_schedule(halo, rank, &schedule));
  check(onehop_schedule_array_bytes(schedule, 0, rank, &bytes));
  check(onehop_schedule_bytes_sent(schedule, rank, &sent));

  double* field = malloc((size_t)bytes);
  for (int64_t i = 0; i < bytes / 8; ++i) field[i] = rank;
  void* arrays[1] = {field};
  onehop_plan* plan;
  check(onehop_plan_new(group, schedule, 1, arrays, &bytes, &plan)); /* prepared once */
  for (int step = 0; step < 100; ++step) {
    check(onehop_plan_start(plan)); /* begins the exchange of the faces */
    /* Update the interior here; it needs no neighbour. */
    check(onehop_plan_finish(plan)); /* the ghosts are valid */
  }

  /* The ghost at site (-1, 0, 0) holds the number of the rank below. */
  const double ghost = field[shape[2] + 1];
  printf("rank %d sends %lld bytes per step and has rank %g below it\n", rank, (long long)sent, ghost);
  double sum = rank;
  check(onehop_allreduce(group, &sum, &sum, 1, ONEHOP_DOUBLE, ONEHOP_SUM));
  check(onehop_plan_free(&plan));
  check(onehop_schedule_free(&schedule));
  check(onehop_halo_free(&halo));
  check(onehop_group_free(&group));
  free(field);
  return ghost == (rank + size - 1) % size && sum == size * (size - 1) / 2.0 ? 0 : 1;
}
