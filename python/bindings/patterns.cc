#include "onehop/patterns.h"

#include "python/bindings/bindings.h"

using onehop::HaloBlock;
using onehop::HaloSpec;

void bind_patterns(nb::module_& module) {
  nb::class_<HaloSpec>(module, "HaloSpec", "An array split over a grid of ranks, with ghost layers around every block.")
      .def(nb::init<>())
      .def_rw("extents", &HaloSpec::extents, "Shape of the global array without ghosts (C order).")
      .def_rw("grid", &HaloSpec::grid, "Ranks per dimension.")
      .def_rw("widths", &HaloSpec::widths, "Ghost layers below and above, per dimension.")
      .def_rw("periodic", &HaloSpec::periodic, "Whether the boundaries of a dimension are periodic.")
      .def_rw("corners", &HaloSpec::corners, "Whether to exchange edges and corners, too.")
      .def_rw("element_bytes", &HaloSpec::element_bytes, "Bytes of an element, per field.")
      .def_rw("rank_at", &HaloSpec::rank_at, "Rank at each position of the grid. Empty: its own number.")
      .def(
          "set_codec",
          [](HaloSpec& spec, const std::string& codec, const std::vector<std::string>& types) {
            spec.codec = onehop::codec_from_string(codec);
            spec.types.clear();
            for (const std::string& type : types) spec.types.push_back(onehop::element_type_from_string(type));
          },
          "codec"_a, "types"_a, "Set the codec on the wire, and the type of the numbers of each field.");
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
        "rank's array has 2^local_bits elements. `permute_bits` needs one round, the variant `one_swap_at_a_time` one "
        "round per swap. `only_rank` limits the schedule to the part of one rank. Raises BadInput for an invalid "
        "permutation.");
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
