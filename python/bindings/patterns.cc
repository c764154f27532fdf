#include "onehop/patterns.h"

#include "python/bindings/bindings.h"

using onehop::HaloBlock;
using onehop::HaloSpec;

void bind_patterns(nb::module_& module) {
  nb::class_<HaloSpec>(module, "HaloSpec",
                       "An array split over a grid of ranks, with ghost layers around every block.\n\n"
                       "Parameters\n----------\n"
                       "extents : sequence of int\n    Shape of the global array without ghosts (C order).\n"
                       "grid : sequence of int\n    Ranks per dimension.\n"
                       "widths : sequence of (int, int)\n    Ghost layers below and above, per dimension.\n"
                       "periodic : sequence of bool\n    Whether the boundaries of a dimension are periodic.\n"
                       "corners : bool\n    Whether to exchange edges and corners, too.\n"
                       "element_bytes : sequence of int\n    Bytes of an element, per field.\n"
                       "codec : str\n    Codec on the wire.\n"
                       "types : sequence of str\n    Type of the numbers of each field, for codecs. Empty: bytes.\n"
                       "rank_at : sequence of int\n    Rank at each position of the grid. Empty: its own number.")
      .def(
          "__init__",
          [](HaloSpec* self, std::vector<std::int64_t> extents, std::vector<int> grid,
             std::vector<std::pair<std::int64_t, std::int64_t>> widths, std::vector<bool> periodic, bool corners,
             std::vector<std::int64_t> element_bytes, const std::string& codec, const std::vector<std::string>& types,
             std::vector<int> rank_at) {
            std::vector<onehop::ElementType> element_types;
            for (const std::string& type : types) element_types.push_back(onehop::element_type_from_string(type));
            new (self) HaloSpec{std::move(extents),
                                std::move(grid),
                                std::move(widths),
                                std::move(periodic),
                                corners,
                                std::move(element_bytes),
                                onehop::codec_from_string(codec),
                                std::move(element_types),
                                std::move(rank_at)};
          },
          "extents"_a, "grid"_a, "widths"_a, "periodic"_a, "corners"_a, "element_bytes"_a, "codec"_a = "raw",
          "types"_a = std::vector<std::string>{}, "rank_at"_a = std::vector<int>{})
      .def_ro("extents", &HaloSpec::extents, "Shape of the global array without ghosts.")
      .def_ro("grid", &HaloSpec::grid, "Ranks per dimension.")
      .def_ro("widths", &HaloSpec::widths, "Ghost layers below and above, per dimension.");
  nb::class_<HaloBlock>(module, "HaloBlock", "The block of one rank of a global array.")
      .def_ro("start", &HaloBlock::start, "Global index of the first interior site.")
      .def_ro("extents", &HaloBlock::extents, "Interior sites per dimension.")
      .def_ro("shape", &HaloBlock::shape, "Shape of the local array, including ghosts.")
      .def_ro("coords", &HaloBlock::coords, "Position of the rank in the grid.");
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
        "type"_a = "bytes", nb::call_guard<nb::gil_scoped_release>(),
        "Make the schedule of a permutation of index bits: bit i of an element's index goes to bit permutation[i]. A "
        "rank's "
        "array has 2^local_bits elements. `permute_bits` needs one round, the variant `one_swap_at_a_time` one round "
        "per "
        "swap. `only_rank` limits the schedule to the part of one rank. Raises BadInput for an invalid permutation.");
  }
  module.def(
      "halo", &onehop::halo, "spec"_a, "only_rank"_a = nb::none(), nb::call_guard<nb::gil_scoped_release>(),
      "Make the schedule of a halo exchange in one round. Array f is field f, with the local shape of `halo_block`. "
      "`only_rank` limits the schedule to the part of one rank. Raises BadInput for an invalid specification.");
  module.def("halo_block", &onehop::halo_block, "spec"_a, "rank"_a,
             "Return the block of a rank. Raises BadInput if there is no such rank.");
  module.def(
      "allgather", &onehop::allgather, "ranks"_a, "elements"_a, "element_bytes"_a, "only_rank"_a = nb::none(),
      nb::call_guard<nb::gil_scoped_release>(),
      "Make the schedule of an all-gather: block [rank * elements, (rank + 1) * elements) of array 0 of every rank "
      "goes to the same place on every other rank.");
}
