/* Every function of rdma_comlib, as QWS uses them: two paths per direction that share a send buffer, alternating. */
#include <pthread.h>
#include <unistd.h>

#include "compat/rdma_comlib.h"
#include "tests/compat/check.h"

enum { steps = 40 };

struct direction {
  rdma_comlib_data data[2];
  int target;
  int source;
  int length; /* ints of a message */
  int step;
};

static void fill(volatile int* buffer, const struct direction* to, int step) {
  for (int i = 0; i < to->length; ++i) buffer[i] = pattern(my_rank(), to->target, step, i);
}

static void check_received(const struct direction* from, int parity, int step) {
  for (int i = 0; i < from->length; ++i) {
    CHECK(from->data[parity].rbuff[i] == pattern(from->source, my_rank(), step, i));
  }
}

/* Buffers as in QWS: aligned, padded to a multiple of 256 bytes, with the counter as the last int. */
static void open_direction(struct direction* d, int shift, int ints) {
  const int n = all_ranks();
  const int external = 1;
  const int tni = (shift > 0 ? 1 : 0) + ints % 5;
  d->target = (my_rank() + shift + n) % n;
  d->source = (my_rank() - shift + n) % n;
  const size_t aligned = (ints * sizeof(int) + sizeof(int) + 255) / 256 * 256;
  const size_t size = aligned - sizeof(int);
  d->length = (int)(size / sizeof(int));
  d->step = 0;
  void* buffers[3];
  for (int i = 0; i < 3; ++i) CHECK(posix_memalign(&buffers[i], 256, aligned) == 0);
  d->data[0].sbuff = d->data[1].sbuff = buffers[0];
  d->data[0].rbuff = buffers[1];
  d->data[1].rbuff = buffers[2];
  rdma_comlib_new_ext(&d->data[0], &tni, &d->target, &d->source, &size, &external);
  rdma_comlib_new_duplicate(&d->data[1], &d->data[0], &size, &external);
  for (int parity = 0; parity < 2; ++parity) {
    CHECK(d->data[parity].rbuff == buffers[1 + parity] && d->data[parity].sbuff == buffers[0]);
    CHECK(rdma_comlib_get_ssize(&d->data[parity]) == (int)size);
  }
}

static void close_direction(struct direction* d) {
  const int external = 1;
  void* sbuff = (void*)d->data[0].sbuff;
  for (int parity = 0; parity < 2; ++parity) {
    void* rbuff = (void*)d->data[parity].rbuff;
    rdma_comlib_delete_ext(&d->data[parity], &external);
    CHECK(d->data[parity].rbuff == rbuff); /* still the caller's, who frees it */
    free(rbuff);
  }
  free(sbuff);
}

static void exchange(struct direction* d, int parity) {
  const int step = d->step++;
  fill(d->data[parity].sbuff, d, step);
  rdma_comlib_isendrecv(&d->data[parity]);
  rdma_comlib_clear_mrq(&d->data[1 - parity]);
  rdma_comlib_irecv_check(&d->data[parity]);
  check_received(d, parity, step);
  rdma_comlib_isend_check(&d->data[parity]);
  for (int i = 0; i < d->length; ++i) d->data[parity].sbuff[i] = -1; /* what was sent is not needed any more */
  rdma_comlib_irecv_ok(&d->data[parity]);
}

static void both_directions(int ints) {
  struct direction up;
  struct direction down;
  open_direction(&up, 1, ints);
  open_direction(&down, -1, ints);
  for (int parity = 0; parity < 2; ++parity) rdma_comlib_swap_vcq_for_sending(&up.data[parity], &down.data[parity]);
  for (int step = 0; step < steps; ++step) {
    const int parity = step % 2;
    /* Parity flips for both, but in some steps only one is used. */
    if (step % 3 != 0) exchange(&up, parity);
    if (step % 5 != 0) exchange(&down, parity);
  }
  close_direction(&up);
  close_direction(&down);
}

/* A message may be sent before the last message of the other path has been received. */
static void two_under_way(void) {
  struct direction d;
  open_direction(&d, 1, 100);
  for (int step = 0; step < steps; step += 2) {
    for (int parity = 0; parity < 2; ++parity) {
      fill(d.data[parity].sbuff, &d, step + parity);
      rdma_comlib_isendrecv(&d.data[parity]);
      rdma_comlib_isend_check(&d.data[parity]);
    }
    for (int parity = 0; parity < 2; ++parity) {
      rdma_comlib_irecv_check(&d.data[parity]);
      check_received(&d, parity, step + parity);
    }
  }
  close_direction(&d);
}

/* The number of this process's receive buffers with pages that a peer writes. */
static int shared_buffers(void) {
  int found = 0;
  char line[1000];
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) found += strstr(line, "onehop receive buffer") != NULL;
  fclose(maps);
  return found;
}

/* Whole pages of a buffer are shared while a path is open and private again afterwards; their contents stay. The sender
   waits until the receiver has finished with them. */
static void shared_pages(int expected) {
  enum { ints = 20000 };
  struct direction d;
  const int external = 1;
  const int before = shared_buffers();
  open_direction(&d, 1, ints);
  if (all_ranks() == 2) CHECK((shared_buffers() > before) == (expected != 0)); /* maps of the target's are beside */
  for (int step = 0; step < 20; ++step) {
    const int parity = step % 2;
    fill(d.data[parity].sbuff, &d, step);
    rdma_comlib_isendrecv(&d.data[parity]);
    rdma_comlib_irecv_check(&d.data[parity]);
    if (my_rank() % 2 == 1) usleep(500);
    check_received(&d, parity, step);
    if (step % 3 == 0) rdma_comlib_irecv_ok(&d.data[parity]);
  }
  for (int parity = 0; parity < 2; ++parity) {
    rdma_comlib_delete_ext(&d.data[parity], &external);
    check_received(&d, parity, 18 + parity);
    free((void*)d.data[parity].rbuff);
  }
  free((void*)d.data[0].sbuff);
  CHECK(shared_buffers() == before);
}

/* The counter lies in a shared page, and the sender finishes before the receiver has opened its path. */
static void counter_in_page(void) {
  enum { bytes = 8192 };
  const int n = all_ranks();
  const int tni = 0;
  const int external = 1;
  const int target = (my_rank() + 1) % n;
  const int source = (my_rank() + n - 1) % n;
  const size_t size = bytes - sizeof(int);
  void* buffers[2];
  for (int i = 0; i < 2; ++i) CHECK(posix_memalign(&buffers[i], 4096, bytes) == 0);
  for (int again = 0; again < 50; ++again) {
    rdma_comlib_data data;
    data.sbuff = buffers[0];
    data.rbuff = buffers[1];
    rdma_comlib_new_ext(&data, &tni, &target, &source, &size, &external);
    data.sbuff[0] = pattern(my_rank(), target, again, 0);
    rdma_comlib_isendrecv(&data);
    rdma_comlib_irecv_check(&data);
    CHECK(data.rbuff[0] == pattern(source, my_rank(), again, 0));
    CHECK(data.rbuff[size / sizeof(int)] == 1);
    rdma_comlib_delete_ext(&data, &external);
  }
  for (int i = 0; i < 2; ++i) free(buffers[i]);
}

/* A duplicate keeps the sbuff that it shares when the original is deleted. */
static void shared_buffer(void) {
  const int n = all_ranks();
  const int tni = 0;
  const int target = (my_rank() + 1) % n;
  const int source = (my_rank() + n - 1) % n;
  const size_t size = 2 * sizeof(int);
  const int external = 1;
  int received[3];
  rdma_comlib_data data;
  rdma_comlib_data other;
  rdma_comlib_new(&data, &tni, &target, &source, &size);
  volatile int* const shared = data.sbuff;
  other.sbuff = shared;
  other.rbuff = received;
  rdma_comlib_new_duplicate(&other, &data, &size, &external);
  rdma_comlib_delete(&data);
  shared[1] = my_rank() + 7;
  rdma_comlib_isendrecv(&other);
  rdma_comlib_irecv_check(&other);
  CHECK(received[1] == source + 7);
  rdma_comlib_delete_ext(&other, &external);
}

/* The library's own buffers. */
static void own_buffers(void) {
  const int n = all_ranks();
  const int tni = 5;
  const int target = (my_rank() + 1) % n;
  const int source = (my_rank() + n - 1) % n;
  const size_t size = 3 * sizeof(int);
  rdma_comlib_data data;
  rdma_comlib_data other;
  const int external = 0;
  rdma_comlib_new(&data, &tni, &target, &source, &size);
  rdma_comlib_new_duplicate(&other, &data, &size, &external);
  CHECK(data.sbuff != other.sbuff && data.rbuff != other.rbuff);
  for (int step = 0; step < 300; ++step) { /* the counter goes round */
    for (int i = 0; i < 3; ++i) data.sbuff[i] = pattern(my_rank(), target, step, i);
    rdma_comlib_isendrecv(&data);
    rdma_comlib_irecv_check(&data);
    for (int i = 0; i < 3; ++i) CHECK(data.rbuff[i] == pattern(source, my_rank(), step, i));
    CHECK(data.rbuff[3] == (step + 1) % 256);
  }
  rdma_comlib_delete(&data);
  rdma_comlib_delete_ext(&other, &external);
  CHECK(data.sbuff == NULL && other.rbuff == NULL);
}

static void* start(void* data) {
  rdma_comlib_isendrecv(data);
  return NULL;
}

/* Threads start different paths at once. */
static void threads(void) {
  struct direction d[4];
  pthread_t thread[4];
  for (int i = 0; i < 4; ++i) open_direction(&d[i], i % 2 == 0 ? 1 : -1, 500 * (i + 1));
  for (int step = 0; step < 10; ++step) {
    const int parity = step % 2;
    for (int i = 0; i < 4; ++i) fill(d[i].data[parity].sbuff, &d[i], step);
    for (int i = 0; i < 4; ++i) CHECK(pthread_create(&thread[i], NULL, start, &d[i].data[parity]) == 0);
    for (int i = 0; i < 4; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < 4; ++i) {
      rdma_comlib_irecv_check(&d[i].data[parity]);
      check_received(&d[i], parity, step);
      rdma_comlib_irecv_ok(&d[i].data[parity]);
    }
  }
  for (int i = 0; i < 4; ++i) close_direction(&d[i]);
}

static void rank_maps(void) {
  int list[8];
  int unused[8];
  const int flag = 0;
  CHECK(rankmap_lib_set_rankmap2d() < 0);
  memset(list, -1, sizeof list);
  CHECK(rankmap_lib_get_tni_list(list, &flag) == 0);
  CHECK(list[3] >= 0 && list[4] == -1);
  CHECK(rankmap_lib_set_rankmap4d() < 0);
  CHECK(rankmap_lib_get_rankmap(unused, unused, unused) < 0);
  CHECK(rankmap_lib_get_tni_list(list, &flag) == 0);
  for (int i = 0; i < 8; ++i) CHECK(list[i] >= 0 && list[i] < 6);
}

/* Adds up the bytes on each interface over the lists of all ranks, which run on one host. */
static void gather_loads(const int* list, const size_t* sizes, size_t* loads) {
  const size_t bytes = 8 * sizeof(int);
  const int tni = 0;
  const int n = all_ranks();
  for (int i = 0; i < 6; ++i) loads[i] = 0;
  for (int shift = 0; shift < n; ++shift) {
    rdma_comlib_data data;
    const int target = (my_rank() + shift) % n;
    const int source = (my_rank() - shift + n) % n;
    rdma_comlib_new(&data, &tni, &target, &source, &bytes);
    for (int i = 0; i < 8; ++i) data.sbuff[i] = list[i];
    rdma_comlib_isendrecv(&data);
    rdma_comlib_irecv_check(&data);
    for (int i = 0; i < 8; ++i) {
      CHECK(data.rbuff[i] >= 0 && data.rbuff[i] < 6);
      loads[data.rbuff[i]] += sizes[i];
    }
    rdma_comlib_irecv_ok(&data);
    rdma_comlib_delete(&data);
  }
}

static size_t busiest(const size_t* loads) {
  size_t most = 0;
  for (int i = 0; i < 6; ++i) most = loads[i] > most ? loads[i] : most;
  return most;
}

static void balanced_interfaces(void) {
  int list[8];
  size_t loads[6];
  const int flag = 0;
  const size_t equal[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  const size_t faces[8] = {72, 72, 384, 384, 576, 576, 768, 768}; /* of a local lattice of 32x6x4x3 */
  CHECK(rankmap_lib_set_rankmap4d() < 0);
  CHECK(rankmap_lib_get_tni_list(list, &flag) == 0);
  gather_loads(list, equal, loads);
  CHECK(busiest(loads) == (size_t)(8 * all_ranks() + 5) / 6);
  CHECK(rankmap_lib_get_balanced_tni_list(list, faces) == 0);
  gather_loads(list, faces, loads);
  /* One rank: its longest message. Two: 1200 each would be ideal, but sums of faces are 24 * (3a + 8b), where 3a + 8b =
     50 needs a = 6 of the four shortest, so 51 * 24 is the least. Three: each interface has one face of each kind.
     Four: see docs/reference/rails.md. */
  const size_t least[5] = {0, 768, 1224, 1800, 2448};
  CHECK(busiest(loads) == least[all_ranks()]);
}

int main(int argc, char** argv) {
  if (made_error(argc, argv)) return 0;
  rdma_comlib_init();
  both_directions(1);
  both_directions(4000);
  both_directions(50000);
  two_under_way();
  shared_pages(1);
  setenv("ONEHOP_SHARE_BUFFERS", "0", 1);
  shared_pages(0);
  both_directions(4000);
  unsetenv("ONEHOP_SHARE_BUFFERS");
  counter_in_page();
  own_buffers();
  shared_buffer();
  threads();
  rank_maps();
  balanced_interfaces();
  rdma_comlib_finalize();
  return 0;
}
