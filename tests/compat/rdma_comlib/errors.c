#include "tests/compat/rdma_comlib/errors.h"

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

static void open_plainly(void) { open_with(0, all_ranks() - 1 - my_rank(), 16); }

static void open_external(size_t size) {
  data.sbuff = data.rbuff = outside;
  rdma_comlib_new_ext(&data, &zero, &zero, &zero, &size, &one);
}

static void wrong_interface(void) { open_with(6, 0, 4); }
static void wrong_rank(void) { open_with(0, all_ranks(), 4); }
static void negative_rank(void) { open_with(0, -1, 4); }
static void wrong_size(void) { open_with(0, 0, 5); }
static void different_sizes(void) { open_with(0, 1 - my_rank(), 4 + 4 * my_rank()); }
static void different_long_sizes(void) { open_with(0, 1 - my_rank(), 40000 + 4000 * my_rank()); }
static void wrong_here(void) { open_with(my_rank() == 1 ? -1 : 0, 1 - my_rank(), 4); }
static void endless(void) { open_with(0, 0, SIZE_MAX - 3); }
static void half_endless(void) { open_with(0, 0, (size_t)1 << 63); }
static void larger_than_memory(void) { open_with(0, 0, (size_t)1 << 50); }
static void endless_here(void) { open_with(0, 1 - my_rank(), my_rank() == 1 ? SIZE_MAX - 7 : 16); }
static void endless_external(void) { open_external(SIZE_MAX - 3); }
static void huge_external(void) { open_external(INT64_MAX - 7); }

static void endless_duplicate(void) {
  const size_t size = SIZE_MAX - 3;
  open_plainly();
  rdma_comlib_new_duplicate(&other, &data, &size, &zero);
}

static void longer_than_shared(void) { /* than the sbuff of the other path */
  const size_t size = 64;
  open_plainly();
  other.sbuff = data.sbuff;
  other.rbuff = outside;
  rdma_comlib_new_duplicate(&other, &data, &size, &one);
}

static void odd_address(void) {
  const size_t size = 16;
  data.sbuff = outside;
  data.rbuff = (int*)((char*)outside + 1);
  rdma_comlib_new_ext(&data, &zero, &zero, &zero, &size, &one);
}

static void size_of_no_int(void) {
  open_with(0, 0, (size_t)1 << 31);
  rdma_comlib_get_ssize(&data);
}

static void no_struct(void) {
  const size_t size = 4;
  rdma_comlib_new(NULL, &zero, &zero, &zero, &size);
}

static void no_size(void) { rdma_comlib_new(&data, &zero, &zero, &zero, NULL); }

static void no_target(void) {
  const size_t size = 4;
  rdma_comlib_new(&data, &zero, my_rank() == 1 ? NULL : &zero, &zero, &size);
}

static void no_interface(void) {
  const size_t size = 4;
  rdma_comlib_new(&data, NULL, &zero, &zero, &size);
}

static void no_path(void) { rdma_comlib_isend_check(NULL); }

static void not_a_path(void) {
  memset(&data, 0, sizeof data);
  rdma_comlib_isendrecv(&data);
}

static void deleted(void) {
  open_plainly();
  rdma_comlib_delete(&data);
  rdma_comlib_irecv_check(&data);
}

static void deleted_twice(void) {
  open_plainly();
  rdma_comlib_delete(&data);
  rdma_comlib_delete(&data);
}

static void copy_of_deleted(void) {
  open_plainly();
  other = data;
  rdma_comlib_delete(&data);
  rdma_comlib_isendrecv(&other);
}

static void copy_deleted_too(void) {
  open_plainly();
  other = data;
  rdma_comlib_delete(&data);
  rdma_comlib_delete(&other);
}

static void copy_of_older(void) { /* another path has the place of the deleted one */
  open_plainly();
  other = data;
  rdma_comlib_delete(&data);
  open_plainly();
  rdma_comlib_irecv_ok(&other);
}

static void duplicate_of_deleted(void) {
  const size_t size = 16;
  open_plainly();
  rdma_comlib_delete(&data);
  rdma_comlib_new_duplicate(&other, &data, &size, &zero);
}

static void opened_twice(void) {
  open_plainly();
  open_plainly();
}

static void duplicate_of_itself(void) {
  const size_t size = 16;
  open_plainly();
  rdma_comlib_new_duplicate(&data, &data, &size, &zero);
}

static void other_length(void) {
  open_plainly();
  data.length = 1 << 20;
  rdma_comlib_isendrecv(&data);
}

static void other_counter_place(void) {
  open_plainly();
  data.data_len_int = 1 << 20;
  rdma_comlib_isendrecv(&data);
}

static void other_size(void) {
  open_plainly();
  data.data_size = SIZE_MAX;
  rdma_comlib_irecv_check(&data);
}

static void other_buffer(void) {
  open_plainly();
  data.sbuff = outside;
  rdma_comlib_delete(&data);
}

static void no_more_buffer(void) {
  open_plainly();
  data.rbuff = NULL;
  rdma_comlib_irecv_check(&data);
}

static void other_path(void) {
  open_plainly();
  data.path = outside;
  rdma_comlib_isendrecv(&data);
}

static void no_buffer(void) {
  const size_t size = 4;
  rdma_comlib_new_ext(&data, &zero, &zero, &zero, &size, &one);
}

static void freed_by_library(void) {
  open_external(4);
  rdma_comlib_delete(&data);
}

static void freed_by_nobody(void) {
  open_plainly();
  rdma_comlib_delete_ext(&data, &one);
}

static void after_finalize(void) {
  open_plainly();
  rdma_comlib_finalize();
  rdma_comlib_isendrecv(&data);
}

static void opened_after_finalize(void) {
  const size_t size = 4;
  rdma_comlib_init();
  rdma_comlib_finalize();
  rdma_comlib_new(&data, &zero, &zero, &zero, &size);
}

static void finalized_twice(void) {
  rdma_comlib_init();
  rdma_comlib_finalize();
  rdma_comlib_finalize();
}

static void send(void) { rdma_comlib_isendrecv(&data); }
static void delete_it(void) { rdma_comlib_delete(&data); }

static void sent_by_child(void) {
  open_plainly();
  in_child(send);
}

static void deleted_by_child(void) {
  open_plainly();
  in_child(delete_it);
}

static void opened_by_child(void) {
  rdma_comlib_init();
  in_child(open_plainly);
}

static void received_too_often(void) {
  setenv("ONEHOP_TIMEOUT", "1", 1);
  open_plainly();
  rdma_comlib_isendrecv(&data);
  rdma_comlib_irecv_check(&data);
  rdma_comlib_irecv_check(&data);
}

static void no_list(void) { rankmap_lib_get_tni_list(NULL, &zero); }
static void no_sizes(void) { rankmap_lib_get_balanced_tni_list(outside, NULL); }

static void endless_sizes(void) {
  static const size_t sizes[8] = {1, SIZE_MAX};
  rankmap_lib_get_balanced_tni_list(outside, sizes);
}

static void wrong_variable(void) {
  setenv("ONEHOP_SHARE_BUFFERS", "yes", 1);
  open_with(0, 1 - my_rank(), 40000);
}

static void lost_peer(void) {
  open_plainly();
  if (my_rank() == 1) _exit(0);
  rdma_comlib_irecv_check(&data);
}

static const struct error_case errors[] = {
    {"interface", 1, 1, "expected a network interface from 0 to 5, found 6", wrong_interface},
    {"rank", 2, 1, "expected ranks from 0 to 1, found 2", wrong_rank},
    {"negative_rank", 2, 1, "expected ranks from 0 to 1, found -1", negative_rank},
    {"size", 1, 1, "expected a multiple of 4 bytes, found 5", wrong_size},
    {"sizes", 2, 1, "rdma_comlib_new", different_sizes},
    {"long", 2, 1, "sends 40004 bytes", different_long_sizes},
    {"here", 2, 1, "rank 1", wrong_here},
    {"endless", 1, 1, "rdma_comlib_new: expected fewer bytes than there are addresses", endless},
    {"half_endless", 1, 1, "rdma_comlib_new: expected fewer bytes than there are addresses", half_endless},
    {"larger_than_memory", 1, 1, "bytes that this machine has, found 1125899906842628", larger_than_memory},
    {"endless_here", 2, 1, "rank 1", endless_here},
    {"endless_external", 1, 1, "rdma_comlib_new_ext: expected fewer bytes than there are", endless_external},
    {"huge_external", 1, 1, "rdma_comlib_new_ext: expected at most the", huge_external},
    {"endless_duplicate", 1, 1, "rdma_comlib_new_duplicate: expected fewer bytes", endless_duplicate},
    {"longer_than_shared", 1, 1, "expected a message of at most the 16 bytes of the shared sbuff", longer_than_shared},
    {"odd_address", 1, 1, "expected an address for ints as rbuff", odd_address},
    {"size_of_no_int", 1, 1, "rdma_comlib_get_ssize: expected a message whose bytes an int can count", size_of_no_int},
    {"no_struct", 1, 1, "expected an rdma_comlib_data, found a null pointer", no_struct},
    {"no_size", 1, 1, "rdma_comlib_new: expected memory of 8 bytes, found a null pointer", no_size},
    {"no_target", 2, 1, "expected memory of 4 bytes, found a null pointer", no_target},
    {"no_interface", 1, 1, "expected memory of 4 bytes, found a null pointer", no_interface},
    {"no_path", 1, 1, "rdma_comlib_isend_check: expected a path, found a null pointer", no_path},
    {"memory", 1, 1, "rdma_comlib_isendrecv: expected a path that rdma_comlib_new made", not_a_path},
    {"deleted", 1, 1, "rdma_comlib_irecv_check: expected a path", deleted},
    {"deleted_twice", 1, 1, "rdma_comlib_delete: expected a path", deleted_twice},
    {"copy_of_deleted", 1, 1,
     "rdma_comlib_isendrecv: expected a path that rdma_comlib_new made, found one that was freed", copy_of_deleted},
    {"copy_deleted_too", 1, 1,
     "rdma_comlib_delete: expected a path that rdma_comlib_new made, found one that was freed", copy_deleted_too},
    {"copy_of_older", 1, 1, "rdma_comlib_irecv_ok: expected a path that rdma_comlib_new made, found one that was freed",
     copy_of_older},
    {"duplicate_of_deleted", 1, 1, "rdma_comlib_new_duplicate: expected a path", duplicate_of_deleted},
    {"opened_twice", 2, 1, "rdma_comlib_new: expected an rdma_comlib_data that is not in use", opened_twice},
    {"duplicate_of_itself", 1, 1, "expected an rdma_comlib_data that is not in use", duplicate_of_itself},
    {"other_length", 1, 1, "expected the fields of the path as rdma_comlib_new set them", other_length},
    {"other_counter_place", 1, 1, "expected the fields of the path", other_counter_place},
    {"other_size", 1, 1, "expected the fields of the path", other_size},
    {"other_buffer", 1, 1, "rdma_comlib_delete: expected the fields of the path", other_buffer},
    {"no_more_buffer", 1, 1, "expected the fields of the path", no_more_buffer},
    {"other_path", 1, 1, "expected a path that rdma_comlib_new made, found something else", other_path},
    {"buffer", 1, 1, "found a null pointer for sbuff", no_buffer},
    {"freed_by_library", 1, 1, "expected has_external = 1, found 0", freed_by_library},
    {"freed_by_nobody", 1, 1, "expected has_external = 0, found 1", freed_by_nobody},
    {"after_finalize", 1, 1, "rdma_comlib_isendrecv: expected to be called before rdma_comlib_finalize",
     after_finalize},
    {"opened_after_finalize", 1, 1, "rdma_comlib_new: expected to be called before", opened_after_finalize},
    {"finalized_twice", 1, 1, "rdma_comlib_finalize: expected to be called once", finalized_twice},
    {"sent_by_child", 1, 1, "was forked from", sent_by_child},
    {"deleted_by_child", 1, 1, "was forked from", deleted_by_child},
    {"opened_by_child", 1, 1, "was forked from", opened_by_child},
    {"received_too_often", 1, 1, "rdma_comlib_irecv_check: ", received_too_often},
    {"no_list", 1, 1, "rankmap_lib_get_tni_list: expected memory of 32 bytes", no_list},
    {"no_sizes", 1, 1, "rankmap_lib_get_balanced_tni_list: expected memory of 64 bytes", no_sizes},
    {"endless_sizes", 1, 1, "expected sizes below 2^63 bytes", endless_sizes},
    {"variable", 2, 1, "ONEHOP_SHARE_BUFFERS: expected 0 or 1, found 'yes'", wrong_variable},
    {"lost", 2, 3, "rank 1", lost_peer},
};

int made_rdma_error(int argc, char** argv) { return made_error(argc, argv, errors, sizeof errors / sizeof errors[0]); }
