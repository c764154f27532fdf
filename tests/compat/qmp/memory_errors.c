/* Errors of memories and of the layout of messages in them, which end the program. */
#include <stdint.h>

#include "compat/qmp.h"
#include "tests/compat/check.h"
#include "tests/compat/qmp/parts.h"

#define ALLOCATION "expected a memory that QMP_allocate_memory made, found "

static int number;

REFUSED(endless, "QMP_declare_msgmem: expected a message of fewer bytes", QMP_declare_msgmem(&number, SIZE_MAX));
REFUSED(larger_than_memory, "bytes that this machine has, found 1125899906842624",
        QMP_declare_msgmem(&number, (size_t)1 << 50));
REFUSED(negative_blocks, "QMP_declare_strided_msgmem: expected a number of 0 or more",
        QMP_declare_strided_msgmem(&number, 4, -1, 8));
REFUSED(endless_stride, "QMP_declare_strided_msgmem: expected ",
        QMP_declare_strided_msgmem(&number, 4, 3, PTRDIFF_MAX / 2));
REFUSED(stride_beyond_memory, "QMP_declare_strided_msgmem: expected at most the ",
        QMP_declare_strided_msgmem(&number, 4, 2, (ptrdiff_t)1 << 60));
REFUSED(endless_blocks, "QMP_declare_strided_msgmem: expected ",
        QMP_declare_strided_msgmem(&number, (size_t)1 << 62, 5, 4));

REFUSED(more_blocks_than_memory, "bytes of memory that are left, found 200000 blocks",
        setenv("ONEHOP_TEST_FREE_MEMORY", "2000000", 1);
        QMP_declare_strided_msgmem(&number, 4, 200000, 8));

ERROR(
    below_zero, 1, 1,
    "QMP_declare_strided_msgmem: expected blocks at addresses above 0") { /* the last block is at a negative address */
  QMP_declare_strided_msgmem(&number, 4, 3, PTRDIFF_MIN / 4);
}

ERROR(stride_past_end, 1, 1, "expected a message within the 100 bytes of its memory") {
  QMP_mem_t* mem = QMP_allocate_memory(100);
  QMP_declare_strided_msgmem(QMP_get_memory_pointer(mem), 4, 4, 33);
}

ERROR(stride_before_begin, 1, 1, "expected a message within the 100 bytes of its memory") {
  QMP_mem_t* mem = QMP_allocate_memory(100);
  QMP_declare_strided_msgmem((char*)QMP_get_memory_pointer(mem) + 8, 4, 4, -4);
}

ERROR(change_past_end, 1, 1, "QMP_change_address: expected a message within the 100 bytes") {
  static char* arguments[] = {"test", NULL};
  begin(1, arguments);
  char* at = QMP_get_memory_pointer(QMP_allocate_memory(100));
  QMP_change_address(QMP_declare_send_to(QMP_declare_msgmem(at, 100), 0, 0), at + 1);
}

ERROR(no_strides, 1, 1, "QMP_declare_strided_array_msgmem: expected memory of 8 bytes") {
  void* base[1] = {&number};
  size_t sizes[1] = {4};
  int blocks[1] = {1};
  QMP_declare_strided_array_msgmem(base, sizes, blocks, NULL, 1);
}

ERROR(no_second_array, 1, 1, "expected memory of 4 bytes, found a null pointer") {
  void* base[2] = {&number, NULL};
  size_t sizes[2] = {4, 4};
  int blocks[2] = {1, 1};
  ptrdiff_t strides[2] = {4, 4};
  QMP_declare_strided_array_msgmem(base, sizes, blocks, strides, 2);
}

ERROR(negative_length, 1, 1, "QMP_declare_indexed_msgmem: expected a number of 0 or more") {
  int lengths[1] = {-1};
  int index[1] = {0};
  QMP_declare_indexed_msgmem(&number, lengths, index, 4, 1);
}

ERROR(index_past_end, 1, 1, "expected a message within the 100 bytes of its memory") {
  int lengths[2] = {1, 1};
  int index[2] = {0, 25};
  QMP_declare_indexed_msgmem(QMP_get_memory_pointer(QMP_allocate_memory(100)), lengths, index, 4, 2);
}

ERROR(allocation_freed_twice, 1, 1, "QMP_free_memory: " ALLOCATION "one that was freed") {
  QMP_mem_t* mem = QMP_allocate_memory(8);
  QMP_free_memory(mem);
  QMP_free_memory(mem);
}

ERROR(pointer_of_freed, 1, 1, "QMP_get_memory_pointer: " ALLOCATION "one that was freed") {
  QMP_mem_t* mem = QMP_allocate_memory(8);
  QMP_free_memory(mem);
  QMP_get_memory_pointer(mem);
}

REFUSED(no_allocation, "QMP_get_memory_pointer: " ALLOCATION "a null pointer", QMP_get_memory_pointer(NULL));
REFUSED(endless_allocation, "expected at most the", QMP_allocate_memory(SIZE_MAX - 100));
REFUSED(endless_alignment, "expected at most the", QMP_allocate_aligned_memory(64, (size_t)1 << 63, 0));
REFUSED(small_odd_alignment, "QMP_allocate_aligned_memory: expected a power of two as the alignment, found 6",
        QMP_allocate_aligned_memory(64, 6, 0));
REFUSED(odd_alignment, "QMP_allocate_aligned_memory: expected a power of two as the alignment, found 24",
        QMP_allocate_aligned_memory(64, 24, 0));
