/* Errors of memories and of the layout of messages in them, which end the program. */
#include <stdint.h>

#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

static int number;

static void endless(void) { QMP_declare_msgmem(&number, SIZE_MAX); }
static void larger_than_memory(void) { QMP_declare_msgmem(&number, (size_t)1 << 50); }
static void negative_blocks(void) { QMP_declare_strided_msgmem(&number, 4, -1, 8); }
static void endless_stride(void) { QMP_declare_strided_msgmem(&number, 4, 3, PTRDIFF_MAX / 2); }
static void endless_blocks(void) { QMP_declare_strided_msgmem(&number, (size_t)1 << 62, 5, 4); }

static void below_zero(void) { /* the last block is at a negative address */
  QMP_declare_strided_msgmem(&number, 4, 3, PTRDIFF_MIN / 4);
}

static void stride_past_end(void) {
  QMP_mem_t* mem = QMP_allocate_memory(100);
  QMP_declare_strided_msgmem(QMP_get_memory_pointer(mem), 4, 4, 33);
}

static void stride_before_begin(void) {
  QMP_mem_t* mem = QMP_allocate_memory(100);
  QMP_declare_strided_msgmem((char*)QMP_get_memory_pointer(mem) + 8, 4, 4, -4);
}

static void change_past_end(void) {
  static char* arguments[] = {"test", NULL};
  begin(1, arguments);
  char* at = QMP_get_memory_pointer(QMP_allocate_memory(100));
  QMP_change_address(QMP_declare_send_to(QMP_declare_msgmem(at, 100), 0, 0), at + 1);
}

static void no_strides(void) {
  void* base[1] = {&number};
  size_t sizes[1] = {4};
  int blocks[1] = {1};
  QMP_declare_strided_array_msgmem(base, sizes, blocks, NULL, 1);
}

static void no_second_array(void) {
  void* base[2] = {&number, NULL};
  size_t sizes[2] = {4, 4};
  int blocks[2] = {1, 1};
  ptrdiff_t strides[2] = {4, 4};
  QMP_declare_strided_array_msgmem(base, sizes, blocks, strides, 2);
}

static void negative_length(void) {
  int lengths[1] = {-1};
  int index[1] = {0};
  QMP_declare_indexed_msgmem(&number, lengths, index, 4, 1);
}

static void index_past_end(void) {
  int lengths[2] = {1, 1};
  int index[2] = {0, 25};
  QMP_declare_indexed_msgmem(QMP_get_memory_pointer(QMP_allocate_memory(100)), lengths, index, 4, 2);
}

static void allocation_freed_twice(void) {
  QMP_mem_t* mem = QMP_allocate_memory(8);
  QMP_free_memory(mem);
  QMP_free_memory(mem);
}

static void pointer_of_freed(void) {
  QMP_mem_t* mem = QMP_allocate_memory(8);
  QMP_free_memory(mem);
  QMP_get_memory_pointer(mem);
}

static void no_allocation(void) { QMP_get_memory_pointer(NULL); }
static void endless_allocation(void) { QMP_allocate_memory(SIZE_MAX - 100); }

#define ALLOCATION "expected a memory that QMP_allocate_memory made, found "

static const struct error_case errors[] = {
    {"endless", 1, 1, "QMP_declare_msgmem: expected a message of fewer bytes", endless},
    {"larger_than_memory", 1, 1, "bytes that this machine has, found 1125899906842624", larger_than_memory},
    {"negative_blocks", 1, 1, "QMP_declare_strided_msgmem: expected a number of 0 or more", negative_blocks},
    {"endless_stride", 1, 1, "QMP_declare_strided_msgmem: expected ", endless_stride},
    {"endless_blocks", 1, 1, "QMP_declare_strided_msgmem: expected ", endless_blocks},
    {"below_zero", 1, 1, "QMP_declare_strided_msgmem: expected blocks at addresses above 0", below_zero},
    {"stride_past_end", 1, 1, "expected a message within the 100 bytes of its memory", stride_past_end},
    {"stride_before_begin", 1, 1, "expected a message within the 100 bytes of its memory", stride_before_begin},
    {"change_past_end", 1, 1, "QMP_change_address: expected a message within the 100 bytes", change_past_end},
    {"no_strides", 1, 1, "QMP_declare_strided_array_msgmem: expected memory of 8 bytes", no_strides},
    {"no_second_array", 1, 1, "expected memory of 4 bytes, found a null pointer", no_second_array},
    {"negative_length", 1, 1, "QMP_declare_indexed_msgmem: expected a number of 0 or more", negative_length},
    {"index_past_end", 1, 1, "expected a message within the 100 bytes of its memory", index_past_end},
    {"allocation_freed_twice", 1, 1, "QMP_free_memory: " ALLOCATION "one that was freed", allocation_freed_twice},
    {"pointer_of_freed", 1, 1, "QMP_get_memory_pointer: " ALLOCATION "one that was freed", pointer_of_freed},
    {"no_allocation", 1, 1, "QMP_get_memory_pointer: " ALLOCATION "a null pointer", no_allocation},
    {"endless_allocation", 1, 1, "expected at most the", endless_allocation},
};

int made_qmp_memory_error(int argc, char** argv) {
  return made_error(argc, argv, errors, sizeof errors / sizeof errors[0]);
}
