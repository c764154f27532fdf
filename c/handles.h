// The objects behind the handles of the C interface, and the boundary that no exception crosses.
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "compat/shared/handles.h"
#include "compat/shared/memory.h"
#include "onehop.h"
#include "onehop/collectives/array_collectives.h"
#include "onehop/collectives/messages.h"
#include "onehop/error.h"
#include "onehop/group.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"

namespace onehop::c {

// The channels of collective operations and messages are opened at the first use.
struct GroupObject {
  Group group;
  std::optional<collectives::ArrayCollectives> arrays{};
  std::optional<collectives::Messages> messages{};

  explicit GroupObject(Group of) : group(std::move(of)) {}
};

extern compat::Handles<onehop_group*, GroupObject, 1> groups;
extern compat::Handles<onehop_halo*, HaloSpec, 3> halos;
extern compat::Handles<onehop_schedule*, Schedule, 5> schedules;
extern compat::Handles<onehop_plan*, Plan, 7> plans;
extern compat::Handles<onehop_request*, collectives::SendRequest, 9> requests;

// Keeps the text of the exception that is being handled, and returns its code.
int failed(const char* where) noexcept;

// Throws BadInput for a null pointer; `name` is what was expected.
[[noreturn]] void refuse_null(const char* name);
template <class Pointer>
void check_pointer(Pointer pointer, const char* name) {
  if (pointer == nullptr) refuse_null(name);
}

template <class Value>
void put(Value* to, Value value) {
  check_pointer(to, "a place for the result");
  *to = std::move(value);
}

// Makes a handle, which `to` receives.
template <class Objects, class Handle, class... Arguments>
void make(Objects& objects, Handle* to, Arguments&&... arguments) {
  check_pointer(to, "a place for the result");
  *to = objects.add(std::forward<Arguments>(arguments)...);
}

template <class Objects, class Handle>
void release(Objects& objects, Handle* handle) {
  check_pointer(handle, "the place of a handle");
  objects.remove(*handle);
  *handle = nullptr;
}

// The numbers at `pointer`. Throws BadInput for a null pointer, a negative count, and more than this machine can hold.
template <class Number>
std::span<Number> numbers(Number* pointer, std::int64_t count, const char* name) {
  if (count < 0) throw BadInput("expected a length of 0 or more, found " + std::to_string(count));
  if (count > 0) check_pointer(pointer, name);
  return compat::checked_span(pointer, count);
}

}  // namespace onehop::c

// A function of the interface.
#define ONEHOP_C_FUNCTION(name, parameters, ...) \
  extern "C" int name parameters {               \
    try {                                        \
      __VA_ARGS__;                               \
      return ONEHOP_SUCCESS;                     \
    } catch (...) {                              \
      return onehop::c::failed(#name);           \
    }                                            \
  }
