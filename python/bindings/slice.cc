#include "onehop/slice.h"

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>

#include <memory>

#include "python/bindings/bindings.h"
#include "src/schedule/schedule_size.h"

using onehop::Slice;

namespace {

using Integers = std::vector<std::int64_t>;

nb::list runs(const Slice& slice) {
  onehop::detail::check_fits("slice", static_cast<double>(slice.pieces()), "runs", 128);
  nb::list result;
  slice.for_each_run([&](std::int64_t offset, std::int64_t count) { result.append(nb::make_tuple(offset, count)); });
  return result;
}

nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>> element_numbers(const Slice& slice) {
  onehop::detail::check_fits("slice", static_cast<double>(slice.elements()), "element numbers", sizeof(std::int64_t));
  auto numbers = std::make_unique<Integers>();
  numbers->reserve(static_cast<std::size_t>(slice.elements()));
  slice.for_each_run([&](std::int64_t offset, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) numbers->push_back(offset + i);
  });
  Integers* held = numbers.release();
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Integers*>(p); });
  return {held->data(), {held->size()}, owner};
}

nb::str repr(const Slice& slice) {
  if (slice.elements() == 0) return nb::str("Slice()");
  if (slice.is_list()) return nb::str("Slice.list({})").format(as_tuple(slice.indices()));
  return nb::str("Slice.box({}, extents={}, strides={})")
      .format(slice.offset(), as_tuple(slice.extents()), as_tuple(slice.strides()));
}

}  // namespace

void bind_slice(nb::module_& module) {
  nb::class_<Slice>(module, "Slice",
                    "A region of an array: a strided box or a list of element numbers, without memory.\n\n"
                    "Elements travel in the order in which the slice lists them.")
      .def(nb::init<>(), "Make an empty slice.")
      .def_static("range", &Slice::range, "offset"_a, "count"_a,
                  "Make a slice of `count` elements that begins with number `offset`.")
      .def_static(
          "box",
          [](std::int64_t offset, const Integers& extents, const Integers& strides) {
            return Slice::box(offset, extents, strides);
          },
          "offset"_a, "extents"_a, "strides"_a,
          "Make a box: element (i0, i1, ...) has number offset + sum(i_d * strides[d]), and the last index runs "
          "fastest.")
      .def_static(
          "subarray",
          [](const Integers& shape, const Integers& start, const Integers& extents) {
            return Slice::subarray(shape, start, extents);
          },
          "shape"_a, "start"_a, "extents"_a,
          "Make the region [start, start + extents) of a C-ordered array of this shape.")
      .def_static("list", &Slice::list, "indices"_a, "Make a slice of the elements with these numbers, in this order.")
      .def_prop_ro("is_list", &Slice::is_list, "Whether this is a list of element numbers rather than a box.")
      .def_prop_ro("elements", &Slice::elements, "Number of elements.")
      .def_prop_ro("pieces", &Slice::pieces, "Number of maximal runs of consecutive elements; 1 is contiguous.")
      .def_prop_ro("bounds", &Slice::bounds, "Smallest element number and one past the largest.")
      .def_prop_ro("offset", &Slice::offset, "Number of the first element of a box.")
      .def_prop_ro("extents", tuple_of(&Slice::extents), "Extents of a box in its simplest form.")
      .def_prop_ro("strides", tuple_of(&Slice::strides), "Strides of a box in its simplest form.")
      .def_prop_ro("indices", tuple_of(&Slice::indices), "Element numbers of a list.")
      .def("runs", &runs, nb::sig("def runs(self) -> collections.abc.Sequence[tuple[int, int]]"),
           "List the maximal runs of consecutive elements in order, as (offset, count).")
      .def("element_numbers", &element_numbers, "Return all element numbers in order, as an array of int64.")
      .def("cut", &Slice::cut, nb::sig("def cut(self, first: int, last: int) -> collections.abc.Sequence[Slice]"),
           "first"_a, "last"_a, "Return the elements [first, last) of this slice, as slices.")
      .def("__len__", &Slice::elements)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", &repr);
}
