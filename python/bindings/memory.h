// Memory of a Python object: anything with the buffer protocol, or DLPack for what has none. Nothing is copied.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

// Holds the object's memory in place as long as it lives.
class Memory {
 public:
  // Throws BadInput, naming `what`, for an object without memory of this kind, one that is not C-contiguous, or one that
  // cannot be written where it must.
  Memory(nb::handle object, bool writable, const char* what);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t item_bytes() const noexcept { return item_bytes_; }

 private:
  void from_buffer(nb::handle object, bool writable, const char* what);
  void from_dlpack(nb::handle object, bool writable, const char* what);

  std::optional<Py_buffer> buffer_;
  nb::ndarray<nb::ro> array_;
  std::span<std::byte> bytes_;
  std::size_t item_bytes_ = 1;
};
