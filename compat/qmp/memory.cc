// Memory, and the layout of messages in it.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include "compat/qmp/state.h"
#include "onehop/error.h"

using onehop::BadInput;
using onehop::compat::guarded;
using onehop::compat::Layout;
using namespace onehop::compat::qmp;

struct QMP_mem_struct {
  void* memory = nullptr;
};

namespace {

QMP_msgmem_t make_memory(const void* base, Layout layout) {
  return new QMP_msgmem_struct{std::make_shared<const Layout>(std::move(layout)),
                               static_cast<std::byte*>(const_cast<void*>(base))};
}

void add_blocks(Layout& layout, std::ptrdiff_t at, std::size_t bytes, int blocks, std::ptrdiff_t stride) {
  for (int i = 0; i < blocks; ++i) layout.add(at + i * stride, bytes);
}

}  // namespace

ONEHOP_COMPAT_API QMP_mem_t* QMP_allocate_aligned_memory(size_t nbytes, size_t alignment, int /*flags*/) {
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<size_t>(nbytes, 1)) != 0) return nullptr;
  return new QMP_mem_struct{memory};
}
ONEHOP_COMPAT_API QMP_mem_t* QMP_allocate_memory(size_t nbytes) {
  return QMP_allocate_aligned_memory(nbytes, QMP_ALIGN_DEFAULT, QMP_MEM_DEFAULT);
}
ONEHOP_COMPAT_API void* QMP_get_memory_pointer(QMP_mem_t* mem) { return mem->memory; }
ONEHOP_COMPAT_API void QMP_free_memory(QMP_mem_t* mem) {
  if (mem != nullptr) std::free(mem->memory);
  delete mem;
}
ONEHOP_COMPAT_API QMP_msgmem_t QMP_declare_msgmem(const void* mem, size_t nbytes) {
  return guarded(__func__, [&] { return make_memory(mem, Layout(nbytes)); });
}
ONEHOP_COMPAT_API QMP_msgmem_t QMP_declare_strided_msgmem(void* base, size_t blksize, int nblocks, ptrdiff_t stride) {
  return guarded(__func__, [&] {
    Layout layout;
    add_blocks(layout, 0, blksize, nblocks, stride);
    return make_memory(base, std::move(layout));
  });
}
ONEHOP_COMPAT_API QMP_msgmem_t QMP_declare_strided_array_msgmem(void* base[], size_t blksize[], int nblocks[],
                                                                ptrdiff_t stride[], int num) {
  return guarded(__func__, [&] {
    Layout layout;
    for (int i = 0; i < num; ++i) {
      add_blocks(layout, static_cast<char*>(base[i]) - static_cast<char*>(base[0]), blksize[i], nblocks[i], stride[i]);
    }
    return make_memory(num > 0 ? base[0] : nullptr, std::move(layout));
  });
}
ONEHOP_COMPAT_API QMP_msgmem_t QMP_declare_indexed_msgmem(void* base, int blocklen[], int index[], int elemsize,
                                                          int count) {
  return guarded(__func__, [&] {
    Layout layout;
    for (int i = 0; i < count; ++i) {
      layout.add(std::ptrdiff_t{index[i]} * elemsize,
                 static_cast<std::size_t>(blocklen[i]) * static_cast<std::size_t>(elemsize));
    }
    return make_memory(base, std::move(layout));
  });
}
ONEHOP_COMPAT_API void QMP_free_msgmem(QMP_msgmem_t m) {
  guarded(__func__, [&] {
    if (m == nullptr) throw BadInput("expected a message memory, found a null pointer");
    delete m;
  });
}
