/* Errors that end the program. */
#include <stdint.h>

#include "compat/rdma_comlib.h"
#include "tests/compat/check.h"

static const int zero = 0;
static const int one = 1;
static rdma_comlib_data data;
static rdma_comlib_data other;
static int outside[20]; /* buffers of the program */

static void open_with(int tni, int target, size_t size) {
  rdma_comlib_init();
  rdma_comlib_new(&data, &tni, &target, &target, &size);
}

static int partner(void) { return all_ranks() - 1 - my_rank(); } /* of 3 ranks, rank 1 is its own */

static void open_plainly(void) { open_with(0, partner(), 16); }

static void open_external(size_t size) {
  const int rank = partner();
  data.sbuff = data.rbuff = outside;
  rdma_comlib_new_ext(&data, &zero, &rank, &rank, &size, &one);
}

REFUSED(wrong_interface, "expected a network interface from 0 to 5, found 6", open_with(6, 0, 4));

ERROR(wrong_rank, 2, 1, "expected ranks from 0 to") { open_with(0, all_ranks(), 4); }
ERROR(negative_rank, 2, 1, ", found -1") { open_with(0, -1, 4); }
REFUSED(wrong_size, "expected a multiple of 4 bytes, found 5", open_with(0, 0, 5));

ERROR(different_sizes, 2, 1, "rdma_comlib_new") { open_with(0, partner(), 4 + 4 * my_rank()); }
ERROR(different_long_sizes, 2, 1, "sends 40004 bytes") { open_with(0, partner(), 40000 + 4000 * my_rank()); }
ERROR(wrong_here, 2, 1, "rank 1") { open_with(my_rank() == 1 ? -1 : 0, partner(), 4); }
REFUSED(endless, "rdma_comlib_new: expected fewer bytes than there are addresses", open_with(0, 0, SIZE_MAX - 3));
REFUSED(half_endless, "rdma_comlib_new: expected fewer bytes than there are addresses",
        open_with(0, 0, (size_t)1 << 63));
REFUSED(larger_than_memory, "bytes that this machine has, found 1125899906842628", open_with(0, 0, (size_t)1 << 50));

ERROR(endless_here, 2, 1, "rank 1") { open_with(0, partner(), my_rank() == 1 ? SIZE_MAX - 7 : 16); }
REFUSED(endless_external, "rdma_comlib_new_ext: expected fewer bytes than there are", open_external(SIZE_MAX - 3));
REFUSED(huge_external, "rdma_comlib_new_ext: expected at most the", open_external(INT64_MAX - 7));

ERROR(endless_duplicate, 1, 1, "rdma_comlib_new_duplicate: expected fewer bytes") {
  const size_t size = SIZE_MAX - 3;
  open_plainly();
  rdma_comlib_new_duplicate(&other, &data, &size, &zero);
}

ERROR(longer_than_shared, 1, 1,
      "expected a message of at most the 16 bytes of the shared sbuff") { /* than the sbuff of the other path */
  const size_t size = 64;
  open_plainly();
  other.sbuff = data.sbuff;
  other.rbuff = outside;
  rdma_comlib_new_duplicate(&other, &data, &size, &one);
}

ERROR(odd_address, 1, 1, "expected an address for ints as rbuff") {
  const size_t size = 16;
  data.sbuff = outside;
  data.rbuff = (int*)((char*)outside + 1);
  rdma_comlib_new_ext(&data, &zero, &zero, &zero, &size, &one);
}

REFUSED(size_of_no_int, "rdma_comlib_get_ssize: expected a message whose bytes an int can count",
        open_with(0, my_rank(), (size_t)1 << 31);
        rdma_comlib_get_ssize(&data));

ERROR(no_struct, 1, 1, "expected an rdma_comlib_data, found a null pointer") {
  const size_t size = 4;
  rdma_comlib_new(NULL, &zero, &zero, &zero, &size);
}

REFUSED(no_size, "rdma_comlib_new: expected memory of 8 bytes, found a null pointer",
        rdma_comlib_new(&data, &zero, &zero, &zero, NULL));

ERROR(no_target, 2, 1, "expected memory of 4 bytes, found a null pointer") {
  const size_t size = 4;
  rdma_comlib_new(&data, &zero, my_rank() == 1 ? NULL : &zero, &zero, &size);
}

ERROR(no_interface, 1, 1, "expected memory of 4 bytes, found a null pointer") {
  const size_t size = 4;
  rdma_comlib_new(&data, NULL, &zero, &zero, &size);
}

REFUSED(no_path, "rdma_comlib_isend_check: expected a path, found a null pointer", rdma_comlib_isend_check(NULL));
REFUSED(not_a_path, "rdma_comlib_isendrecv: expected a path that rdma_comlib_new made", memset(&data, 0, sizeof data);
        rdma_comlib_isendrecv(&data));
REFUSED(deleted, "rdma_comlib_irecv_check: expected a path", open_plainly(); rdma_comlib_delete(&data);
        rdma_comlib_irecv_check(&data));
REFUSED(deleted_twice, "rdma_comlib_delete: expected a path", open_plainly(); rdma_comlib_delete(&data);
        rdma_comlib_delete(&data));

ERROR(copy_of_deleted, 1, 1,
      "rdma_comlib_isendrecv: expected a path that rdma_comlib_new made, found one that was freed") {
  open_plainly();
  other = data;
  rdma_comlib_delete(&data);
  rdma_comlib_isendrecv(&other);
}

ERROR(copy_deleted_too, 1, 1,
      "rdma_comlib_delete: expected a path that rdma_comlib_new made, found one that was freed") {
  open_plainly();
  other = data;
  rdma_comlib_delete(&data);
  rdma_comlib_delete(&other);
}

ERROR(copy_of_older, 1, 1,
      "rdma_comlib_irecv_ok: expected a path that rdma_comlib_new made, found one that was freed") { /* another path has
                                                                                                        the place of the
                                                                                                        deleted one */
  open_plainly();
  other = data;
  rdma_comlib_delete(&data);
  open_plainly();
  rdma_comlib_irecv_ok(&other);
}

ERROR(duplicate_of_deleted, 1, 1, "rdma_comlib_new_duplicate: expected a path") {
  const size_t size = 16;
  open_plainly();
  rdma_comlib_delete(&data);
  rdma_comlib_new_duplicate(&other, &data, &size, &zero);
}

ERROR(opened_twice, 2, 1, "rdma_comlib_new: expected an rdma_comlib_data that is not in use") {
  open_plainly();
  open_plainly();
}

ERROR(duplicate_of_itself, 1, 1, "expected an rdma_comlib_data that is not in use") {
  const size_t size = 16;
  open_plainly();
  rdma_comlib_new_duplicate(&data, &data, &size, &zero);
}

REFUSED(other_length, "expected the fields of the path as rdma_comlib_new set them", open_plainly();
        data.length = 1 << 20; rdma_comlib_isendrecv(&data));
REFUSED(other_counter_place, "expected the fields of the path", open_plainly(); data.data_len_int = 1 << 20;
        rdma_comlib_isendrecv(&data));
REFUSED(other_size, "expected the fields of the path", open_plainly(); data.data_size = SIZE_MAX;
        rdma_comlib_irecv_check(&data));
REFUSED(other_buffer, "rdma_comlib_delete: expected the fields of the path", open_plainly(); data.sbuff = outside;
        rdma_comlib_delete(&data));
REFUSED(no_more_buffer, "expected the fields of the path", open_plainly(); data.rbuff = NULL;
        rdma_comlib_irecv_check(&data));
REFUSED(other_path, "expected a path that rdma_comlib_new made, found something else", open_plainly();
        data.path = outside; rdma_comlib_isendrecv(&data));

ERROR(no_buffer, 1, 1, "found a null pointer for sbuff") {
  const size_t size = 4;
  rdma_comlib_new_ext(&data, &zero, &zero, &zero, &size, &one);
}

REFUSED(freed_by_library, "expected has_external = 1, found 0", open_external(4); rdma_comlib_delete(&data));
REFUSED(freed_by_nobody, "expected has_external = 0, found 1", open_plainly(); rdma_comlib_delete_ext(&data, &one));
REFUSED(after_finalize, "rdma_comlib_isendrecv: expected to be called before rdma_comlib_finalize", open_plainly();
        rdma_comlib_finalize(); rdma_comlib_isendrecv(&data));

ERROR(opened_after_finalize, 1, 1, "rdma_comlib_new: expected to be called before") {
  const size_t size = 4;
  rdma_comlib_init();
  rdma_comlib_finalize();
  rdma_comlib_new(&data, &zero, &zero, &zero, &size);
}

REFUSED(finalized_twice, "rdma_comlib_finalize: expected to be called once", rdma_comlib_init(); rdma_comlib_finalize();
        rdma_comlib_finalize());

static void send(void) { rdma_comlib_isendrecv(&data); }
static void delete_it(void) { rdma_comlib_delete(&data); }

REFUSED(sent_by_child, "was forked from", open_plainly(); in_child(send));
REFUSED(deleted_by_child, "was forked from", open_plainly(); in_child(delete_it));
REFUSED(opened_by_child, "was forked from", rdma_comlib_init(); in_child(open_plainly));

ERROR(received_too_often, 1, 1, "rdma_comlib_irecv_check: ") {
  setenv("ONEHOP_TIMEOUT", "1", 1);
  open_plainly();
  rdma_comlib_isendrecv(&data);
  rdma_comlib_irecv_check(&data);
  rdma_comlib_irecv_check(&data);
}

REFUSED(no_list, "rankmap_lib_get_tni_list: expected memory of 32 bytes", rankmap_lib_get_tni_list(NULL, &zero));
REFUSED(no_sizes, "rankmap_lib_get_balanced_tni_list: expected memory of 64 bytes",
        rankmap_lib_get_balanced_tni_list(outside, NULL));

ERROR(endless_sizes, 1, 1, "expected sizes below 2^63 bytes") {
  static const size_t sizes[8] = {1, SIZE_MAX};
  rankmap_lib_get_balanced_tni_list(outside, sizes);
}

ERROR(wrong_variable, 2, 1, "ONEHOP_SHARE_BUFFERS: expected 0 or 1, found 'yes'") {
  setenv("ONEHOP_SHARE_BUFFERS", "yes", 1);
  open_with(0, partner(), 40000);
}

ERROR(lost_peer, 2, 3, "rank 1") {
  open_plainly();
  if (my_rank() == 1) _exit(0);
  rdma_comlib_irecv_check(&data);
}
