#include "python/bindings/memory.h"

#include "onehop/error.h"
#include "python/bindings/bindings.h"

using onehop::BadInput;

namespace {

constexpr const char* not_contiguous =
    " must be C-contiguous, but its strides leave gaps or reorder it; make a contiguous array once and keep it (for "
    "example with numpy.ascontiguousarray), because onehop does not copy it";
constexpr const char* read_only = " is written to, but it is read-only; pass an array that can be written";

// Whether an array of NumPy, or a view of one, has Python's objects, whose addresses mean nothing elsewhere.
bool has_objects(nb::handle object) {
  if (PyMemoryView_Check(object.ptr())) return has_objects(object.attr("obj"));
  const nb::object type = nb::getattr(object, "dtype", nb::none());
  return nb::getattr(type, "hasobject", nb::bool_(false)).is(nb::bool_(true));
}

std::string kind_of(nb::handle object) { return nb::cast<std::string>(nb::str(nb::type_name(object.type()))); }

}  // namespace

bool is_contiguous(const nb::ndarray<nb::ro>& array) {
  std::int64_t expected = 1;
  if (array.size() == 0) return true;
  for (std::size_t d = array.ndim(); d-- > 0;) {
    if (array.shape(d) == 1) continue;
    if (array.stride(d) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(d));
  }
  return true;
}

Memory::Memory(nb::handle object, bool writable, const char* what) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    if (has_objects(object)) throw BadInput(std::string(what) + " has Python objects, which cannot be moved");
    from_buffer(object, writable, what);
  } else if (nb::hasattr(object, "__dlpack__")) {
    from_dlpack(object, writable, what);
  } else {
    throw BadInput(std::string(what) + " must be an array (NumPy, the buffer protocol or DLPack), but it is a " +
                   kind_of(object));
  }
}

Memory::~Memory() {
  if (buffer_) PyBuffer_Release(&*buffer_);
}

void Memory::from_buffer(nb::handle object, bool writable, const char* what) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, writable ? PyBUF_STRIDES | PyBUF_WRITABLE : PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    if (writable && PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDES) == 0) {
      PyBuffer_Release(&view);
      throw BadInput(std::string(what) + read_only);
    }
    PyErr_Clear();
    throw BadInput(std::string(what) + " gives no access to its memory (a " + kind_of(object) + ")");
  }
  buffer_ = view;
  // The destructor does not run if the constructor throws, so release the buffer here.
  if (PyBuffer_IsContiguous(&view, 'C') == 0) {
    PyBuffer_Release(&*buffer_);
    throw BadInput(std::string(what) + not_contiguous);
  }
  bytes_ = {static_cast<std::byte*>(view.buf), static_cast<std::size_t>(view.len)};
  item_bytes_ = static_cast<std::size_t>(view.itemsize);
}

void Memory::from_dlpack(nb::handle object, bool writable, const char* what) {
  constexpr int cpu = 1;  // DLPack's number for memory of the processor
  const int device = nb::cast<int>(object.attr("__dlpack_device__")()[0]);
  if (device != cpu) {
    throw BadInput(std::string(what) + " must lie in the processor's memory, but it lies on a device (DLPack type " +
                   std::to_string(device) + "); copy it to the processor first");
  }
  if (writable) {
    nb::ndarray<> array;
    if (!nb::try_cast(object, array, false)) throw BadInput(std::string(what) + read_only);
    array_ = nb::ndarray<nb::ro>(array);
  } else if (!nb::try_cast(object, array_, false)) {
    throw BadInput(std::string(what) + " does not hand out its memory through DLPack (a " + kind_of(object) + ")");
  }
  if (!is_contiguous(array_)) throw BadInput(std::string(what) + not_contiguous);
  // The check for write access above makes this const_cast safe.
  bytes_ = {static_cast<std::byte*>(const_cast<void*>(array_.data())), array_.nbytes()};
  item_bytes_ = array_.itemsize();
}

void bind_memory(nb::module_& module) {
  nb::class_<Memory>(module, "Memory",
                     "The memory of a C-contiguous array (NumPy, buffer or DLPack), which stays in place as long as "
                     "this object lives. `what` names the array in the BadInput of any other one.")
      .def(
          "__init__",
          [](Memory* self, nb::handle object, bool writable, const std::string& what) {
            new (self) Memory(object, writable, what.c_str());
          },
          "array"_a, "writable"_a = true, "what"_a = "the array")
      .def_prop_ro(
          "bytes", [](const Memory& m) { return m.bytes().size(); }, "Size of the memory in bytes.")
      .def_prop_ro("item_bytes", &Memory::item_bytes, "Bytes of one element.")
      .def_prop_ro(
          "address", [](const Memory& m) { return reinterpret_cast<std::uintptr_t>(m.bytes().data()); },
          "Address of the memory.");
}
