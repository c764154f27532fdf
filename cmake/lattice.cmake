# Lattice field theory: on top of the library's public headers only.

file(GLOB_RECURSE ONEHOP_LATTICE_SOURCES CONFIGURE_DEPENDS lattice/*.cc)
add_library(onehop_lattice STATIC ${ONEHOP_LATTICE_SOURCES})
add_library(onehop::onehop_lattice ALIAS onehop_lattice)
target_link_libraries(onehop_lattice PUBLIC onehop)
target_include_directories(onehop_lattice PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
onehop_compile_options(onehop_lattice)
# Bitwise the same on every processor: no product and sum may become one rounding. The vectors of the kernels are passed to inlined
# functions only, so that how they would be passed to others does not matter. This holds for gauge fields and all averages of links, in loops over vectors (lattice/geometry/site_loop.h). g++ 12 contracts products of complex numbers all the
# same (vfmaddsub) where it makes vectors by itself, so it may not.
set_source_files_properties(lattice/gauge/clover_leaves.cc lattice/gauge/flow.cc lattice/gauge/gauge.cc lattice/gauge/hmc.cc lattice/gauge/fat_links.cc lattice/gauge/smearing.cc
  PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-fno-tree-vectorize;-Wno-psabi")
# Loops over the compiler's vectors (lattice/support/simd.h).
set_source_files_properties(lattice/solver/vector_loops.cc lattice/staggered/dslash_kernel_double.cc lattice/staggered/dslash_kernel_single.cc lattice/staggered/dslash_kernel_half.cc
                            PROPERTIES COMPILE_OPTIONS "-O3;-Wno-psabi")
# The loops for arrays: one source for every kind of processor, which is compiled once for each (lattice/support/processor.h).
set_source_files_properties(lattice/su3/su3_kernels_portable.cc lattice/su3/su3_kernels_avx2.cc lattice/su3/su3_kernels_avx512.cc
  lattice/wilson/wilson_kernel_portable.cc lattice/wilson/wilson_kernel_avx2.cc lattice/wilson/wilson_kernel_avx512.cc
  PROPERTIES COMPILE_OPTIONS "-O3;-fno-math-errno;-Wno-psabi")
# Under the sanitizers g++ takes minutes for each of these. Checks of every lane for undefined behaviour make most of that, and the loops
# for one kind of processor are the source of the portable ones, which stay under the sanitizers. The rest is -O3 on loops that the checks
# of addresses have made long: -O1, which comes last and so counts, takes a sixth of the time.
if(ONEHOP_SANITIZE)
  set_property(SOURCE lattice/gauge/clover_leaves.cc lattice/gauge/flow.cc lattice/gauge/gauge.cc lattice/gauge/hmc.cc lattice/gauge/fat_links.cc lattice/gauge/smearing.cc
    lattice/su3/su3_kernels_portable.cc lattice/wilson/wilson_kernel_portable.cc APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=undefined")
  set_property(SOURCE lattice/su3/su3_kernels_avx2.cc lattice/su3/su3_kernels_avx512.cc lattice/wilson/wilson_kernel_avx2.cc
    lattice/wilson/wilson_kernel_avx512.cc APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=all")
  set_property(SOURCE lattice/gauge/clover_leaves.cc lattice/gauge/flow.cc lattice/gauge/gauge.cc lattice/gauge/hmc.cc lattice/staggered/dslash_kernel_double.cc
    lattice/staggered/dslash_kernel_half.cc lattice/staggered/dslash_kernel_single.cc lattice/gauge/fat_links.cc lattice/gauge/smearing.cc lattice/wilson/wilson_kernel_portable.cc
    APPEND PROPERTY COMPILE_OPTIONS "-O1")
endif()
onehop_precompile(onehop_lattice)
