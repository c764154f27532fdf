// The bindings of onehop._core: one function per noun, each in the file of its name. They translate, and decide nothing.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

void bind_error(nb::module_& module);
