// Memory, and the layout of messages in it.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "compat/qmp/state.h"
#include "onehop/error.h"

using onehop::BadInput;
using onehop::compat::check_memory;
using onehop::compat::check_size;
using onehop::compat::checked_span;
using onehop::compat::guarded;
using onehop::compat::Handles;
using onehop::compat::Layout;
using onehop::compat::throw_negative;
using namespace onehop::compat::qmp;

struct QMP_mem_struct {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

namespace {

constinit Handles<QMP_mem_t*, QMP_mem_struct, 0x65> allocations("a memory", "QMP_allocate_memory");
constinit Handles<QMP_msgmem_t, QMP_msgmem_struct, 0x67> memories("a message memory", "QMP_declare_..._msgmem");

// The allocations, by the address behind them.
std::map<const std::byte*, QMP_mem_struct>& allocated() {
  static std::map<const std::byte*, QMP_mem_struct> all;
  return all;
}

// A null pointer stands for an address that QMP_change_address sets later.
QMP_msgmem_t make_memory(const void* at, Layout layout, bool one_array = true) {
  auto* const base = static_cast<std::byte*>(const_cast<void*>(at));
  const QMP_msgmem_struct made{std::make_shared<const Layout>(std::move(layout)), base, one_array};
  if (base != nullptr) check_address(made, base);
  return memories.add(made);
}

std::size_t checked_count(int count) {
  if (count < 0) throw_negative(count);
  return static_cast<std::size_t>(count);
}

QMP_mem_t* allocate(std::size_t bytes, std::size_t alignment) {
  void* memory = nullptr;
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  const std::size_t multiple = std::max(alignment, sizeof(void*));  // QMP_ALIGN_ANY is 0
  if (alignment != 0 && !std::has_single_bit(alignment)) {
    throw BadInput("expected a power of two as the alignment, found " + std::to_string(alignment));
  }
  check_size(size);
  check_size(multiple);
  if (posix_memalign(&memory, multiple, size) != 0) return nullptr;
  const QMP_mem_struct made{static_cast<std::byte*>(memory), bytes};
  allocated().emplace(made.memory + size, made);
  return allocations.add(made);
}

}  // namespace

namespace onehop::compat::qmp {

QMP_msgmem_struct& checked(QMP_msgmem_t memory) { return memories.at(memory); }

void check_address(const QMP_msgmem_struct& message, const std::byte* base) {
  const Layout& layout = *message.layout;
  layout.check_at(base);
  const auto found = allocated().upper_bound(base);
  if (!message.one_array || layout.bytes == 0 || found == allocated().end() || base < found->second.memory) return;
  const QMP_mem_struct& within = found->second;
  const std::ptrdiff_t at = base - within.memory;
  if (at + layout.first >= 0 && at + layout.behind <= static_cast<std::ptrdiff_t>(within.bytes)) return;
  throw BadInput("expected a message within the " + std::to_string(within.bytes) +
                 " bytes of its memory, found one from byte " + std::to_string(at + layout.first) + " to byte " +
                 std::to_string(at + layout.behind));
}

bool is_allocated(const std::byte* base) {
  const auto found = allocated().upper_bound(base);
  return found != allocated().end() && base >= found->second.memory;
}

}  // namespace onehop::compat::qmp

ONEHOP_COMPAT_FUNCTION(QMP_mem_t*, QMP_allocate_aligned_memory, (size_t nbytes, size_t alignment, int /*flags*/),
                       allocate(nbytes, alignment))
ONEHOP_COMPAT_API QMP_mem_t* QMP_allocate_memory(size_t nbytes) {
  return QMP_allocate_aligned_memory(nbytes, QMP_ALIGN_DEFAULT, QMP_MEM_DEFAULT);
}
ONEHOP_COMPAT_API void* QMP_get_memory_pointer(QMP_mem_t* mem) {
  return guarded(__func__, [&]() -> void* { return allocations.at(mem).memory; });
}
ONEHOP_COMPAT_API void QMP_free_memory(QMP_mem_t* mem) {
  guarded(__func__, [&] {
    if (mem == nullptr) return;
    const QMP_mem_struct freed = allocations.at(mem);
    allocated().erase(freed.memory + std::max<std::size_t>(freed.bytes, 1));
    allocations.remove(mem);
    std::free(freed.memory);
  });
}
ONEHOP_COMPAT_FUNCTION(QMP_msgmem_t, QMP_declare_msgmem, (const void* mem, size_t nbytes),
                       make_memory(mem, Layout(nbytes)))
ONEHOP_COMPAT_API QMP_msgmem_t QMP_declare_strided_msgmem(void* base, size_t blksize, int nblocks, ptrdiff_t stride) {
  return guarded(__func__, [&] {
    Layout layout;
    layout.add_strided(0, blksize, checked_count(nblocks), stride);
    return make_memory(base, std::move(layout));
  });
}
ONEHOP_COMPAT_API QMP_msgmem_t QMP_declare_strided_array_msgmem(void* base[], size_t blksize[], int nblocks[],
                                                                ptrdiff_t stride[], int num) {
  return guarded(__func__, [&] {
    Layout layout;
    const std::span bases = checked_span(base, num);
    const std::span sizes = checked_span(blksize, num);
    const std::span counts = checked_span(nblocks, num);
    const std::span strides = checked_span(stride, num);
    const std::byte* first = nullptr;  // of the arrays that have bytes
    for (std::size_t i = 0; i < bases.size(); ++i) {
      const std::size_t count = checked_count(counts[i]);
      if (sizes[i] == 0 || count == 0) continue;
      const auto* const at = static_cast<const std::byte*>(bases[i]);
      check_memory(at, sizes[i]);
      if (first == nullptr) first = at;
      auto alone = std::make_shared<Layout>();
      alone->add_strided(0, sizes[i], count, strides[i]);
      check_address({alone, nullptr}, at);
      layout.add_strided(at - first, sizes[i], count, strides[i]);
    }
    return make_memory(first, std::move(layout), num == 1);
  });
}
ONEHOP_COMPAT_API QMP_msgmem_t QMP_declare_indexed_msgmem(void* base, int blocklen[], int index[], int elemsize,
                                                          int count) {
  return guarded(__func__, [&] {
    Layout layout;
    const std::span lengths = checked_span(blocklen, count);
    const std::span indices = checked_span(index, count);
    const std::size_t bytes = checked_count(elemsize);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      layout.add(std::ptrdiff_t{indices[i]} * elemsize, checked_count(lengths[i]) * bytes);
    }
    return make_memory(base, std::move(layout));
  });
}
ONEHOP_COMPAT_FUNCTION(void, QMP_free_msgmem, (QMP_msgmem_t m), memories.remove(m))
