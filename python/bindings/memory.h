// Access to the memory of a Python object through the buffer protocol, or else through DLPack, without a copy.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

[[nodiscard]] bool is_contiguous(const nb::ndarray<nb::ro>& array);

// Keeps the memory of an object in place as long as it lives.
class Memory {
 public:
  // Throws BadInput, which names the array as `what`, if the object gives no access to memory of the processor, is not
  // C-contiguous, or is read-only although `writable` is set.
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
