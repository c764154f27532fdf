#include "onehop/patterns.h"

#include "python/bindings/bindings.h"

using onehop::HaloBlock;
using onehop::HaloSpec;

void bind_patterns(nb::module_& module) {
  nb::class_<HaloSpec>(module, "HaloSpec", "An array split over a grid of ranks, with ghost layers around every block.")
      .def(
          "__init__",
          [](HaloSpec* self, std::vector<std::int64_t> extents, std::vector<int> grid,
             std::vector<std::pair<std::int64_t, std::int64_t>> widths, std::vector<bool> periodic, bool corners,
             std::vector<std::int64_t> element_bytes, const std::string& codec, const std::vector<std::string>& types) {
            std::vector<onehop::ElementType> element_types;
            for (const std::string& type : types) element_types.push_back(onehop::element_type_from_string(type));
            new (self) HaloSpec{std::move(extents),
                                std::move(grid),
                                std::move(widths),
                                std::move(periodic),
                                corners,
                                std::move(element_bytes),
                                onehop::codec_from_string(codec),
                                std::move(element_types)};
          },
          "extents"_a, "grid"_a, "widths"_a, "periodic"_a, "corners"_a, "element_bytes"_a, "codec"_a = "raw",
          "types"_a = std::vector<std::string>{})
      .def_ro("extents", &HaloSpec::extents)
      .def_ro("grid", &HaloSpec::grid)
      .def_ro("widths", &HaloSpec::widths);
  nb::class_<HaloBlock>(module, "HaloBlock", "One rank's block of a halo.")
      .def_ro("start", &HaloBlock::start)
      .def_ro("extents", &HaloBlock::extents)
      .def_ro("shape", &HaloBlock::shape)
      .def_ro("coords", &HaloBlock::coords);
  using Permute = onehop::Schedule (*)(const onehop::PermuteBitsSpec&, std::optional<int>);
  for (const auto& [name, permute] : {std::pair<const char*, Permute>{"permute_bits", &onehop::permute_bits},
                                      {"permute_bits_one_swap_at_a_time", &onehop::permute_bits_one_swap_at_a_time}}) {
    module.def(
        name,
        [permute = permute](int bits, int local_bits, std::vector<int> permutation, std::int64_t element_bytes,
                            const std::string& codec, std::optional<int> only_rank, const std::string& type) {
          return permute({bits, local_bits, std::move(permutation), element_bytes, onehop::codec_from_string(codec),
                          onehop::element_type_from_string(type)},
                         only_rank);
        },
        "bits"_a, "local_bits"_a, "permutation"_a, "element_bytes"_a, "codec"_a, "only_rank"_a = nb::none(),
        "type"_a = "bytes", nb::call_guard<nb::gil_scoped_release>());
  }
  module.def("halo", &onehop::halo, "spec"_a, "only_rank"_a = nb::none(), nb::call_guard<nb::gil_scoped_release>());
  module.def("halo_block", &onehop::halo_block, "spec"_a, "rank"_a);
  module.def("allgather", &onehop::allgather, "ranks"_a, "elements"_a, "element_bytes"_a, "only_rank"_a = nb::none(),
             nb::call_guard<nb::gil_scoped_release>(),
             "One round in which every rank's block of array 0 goes to the same place on every other rank.");
}
