// Calls with arguments that no signature takes. nanobind answers with a list of all signatures; onehop.call_errors says
// which argument is wrong and what was expected.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "python/bindings/bindings.h"

namespace {

using Call = PyObject* (*)(PyObject*, PyObject* const*, size_t, PyObject*);

// The functions through which nanobind is called, of which it has six.
constexpr size_t max_calls = 16;
std::array<Call, max_calls> calls{};

// Replaces nanobind's TypeError, if the current exception is one, by the error that onehop.call_errors makes of it.
void explain(PyObject* function, PyObject* const* args, size_t flags, PyObject* names) {
  nb::python_error error;
  try {
    const std::string text = nb::cast<std::string>(nb::str(error.value()));
    if (text.find("(): incompatible function arguments.") != std::string::npos) {
      // Python and nanobind have flags in the upper half.
      const size_t number = static_cast<uint32_t>(flags);
      nb::list positional;
      for (size_t i = 0; i < number; ++i) positional.append(nb::handle(args[i]));
      nb::dict named;
      for (size_t i = 0; names != nullptr && i < nb::len(nb::handle(names)); ++i) {
        named[nb::handle(names)[i]] = nb::handle(args[number + i]);
      }
      const nb::object made =
          nb::module_::import_("onehop.call_errors").attr("explained")(nb::handle(function), positional, named);
      if (!made.is_none()) {
        PyErr_SetObject(nb::handle(made.type()).ptr(), made.ptr());
        return;
      }
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nanobind's message is better than none
  }
  error.restore();
}

template <size_t N>
PyObject* call(PyObject* function, PyObject* const* args, size_t flags, PyObject* names) {
  PyObject* result = calls[N](function, args, flags, names);
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0) explain(function, args, flags, names);
  return result;
}

template <size_t... N>
constexpr std::array<Call, max_calls> make_wrappers(std::index_sequence<N...>) {
  return {call<N>...};
}

// Whether `code` is a function of this module, as nanobind's are. The stable ABI does not have PyVectorcall_Function.
bool is_here(Call code) {
  Dl_info found{};
  Dl_info here{};
  return dladdr(reinterpret_cast<void*>(code), &found) != 0 && dladdr(static_cast<void*>(&calls), &here) != 0 &&
         found.dli_fbase == here.dli_fbase;
}

// Puts `call` before the function through which Python calls a function of nanobind. Its place is the first field of
// the object; where it is not, the function stays as it is.
void wrap(nb::handle function) {
  const auto kind = nb::cast<std::string>(nb::handle(function.type()).attr("__name__"));
  if (kind != "nb_func" && kind != "nb_method") return;
  static constexpr std::array<Call, max_calls> wrappers = make_wrappers(std::make_index_sequence<max_calls>());
  auto* place = reinterpret_cast<Call*>(reinterpret_cast<char*>(function.ptr()) + sizeof(PyVarObject));
  const Call original = *place;
  if (original == nullptr || !is_here(original)) return;
  if (std::find(wrappers.begin(), wrappers.end(), original) != wrappers.end()) return;
  const auto known =
      std::find_if(calls.begin(), calls.end(), [&](Call one) { return one == original || one == nullptr; });
  if (known == calls.end()) return;
  *known = original;
  *place = wrappers[static_cast<size_t>(known - calls.begin())];
}

void wrap_all(const nb::dict& names) {
  for (auto [name, value] : names) {
    wrap(value);
    if (PyObject_TypeCheck(value.ptr(), &PyProperty_Type)) {
      wrap(value.attr("fget"));
      wrap(value.attr("fset"));
    }
  }
}

}  // namespace

void explain_wrong_calls(nb::module_& module) {
  const nb::dict names = nb::cast<nb::dict>(module.attr("__dict__"));
  wrap_all(names);
  for (auto [name, value] : names) {
    if (PyType_Check(value.ptr()))
      wrap_all(nb::cast<nb::dict>(nb::module_::import_("builtins").attr("dict")(value.attr("__dict__"))));
  }
}
