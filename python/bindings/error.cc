// Translation of the C++ errors to the Python exceptions of the same names in onehop.error.
#include "onehop/error.h"

#include <string>

#include "python/bindings/bindings.h"

namespace {

// Raises onehop.error.NAME(message) as the current Python exception. A message may quote bytes that are not UTF-8.
template <typename... Args>
void raise(const char* name, const char* message, Args... args) {
  nb::object type = nb::module_::import_("onehop.error").attr(name);
  const auto length = static_cast<Py_ssize_t>(std::char_traits<char>::length(message));
  const auto text = nb::steal<nb::object>(PyUnicode_DecodeUTF8(message, length, "replace"));
  nb::object instance = type(text, args...);
  PyErr_SetObject(type.ptr(), instance.ptr());
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const onehop::PeerLost& e) {
    raise("PeerLost", e.what(), e.rank());
  } catch (const onehop::BadInput& e) {
    raise("BadInput", e.what());
  } catch (const onehop::Mismatch& e) {
    raise("Mismatch", e.what());
  } catch (const onehop::Timeout& e) {
    raise("Timeout", e.what());
  } catch (const onehop::Error& e) {
    raise("Error", e.what());
  }
}

}  // namespace

void bind_error(nb::module_& module) {
  nb::register_exception_translator(translate);
  // Lets a test check the translation of every C++ error.
  module.def("_throw", [](const std::string& name, const std::string& message) {
    if (name == "PeerLost") throw onehop::PeerLost(3, message);
    if (name == "BadInput") throw onehop::BadInput(message);
    if (name == "Mismatch") throw onehop::Mismatch(message);
    if (name == "Timeout") throw onehop::Timeout(message);
    throw onehop::Error(message);
  });
}
