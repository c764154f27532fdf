# Lattice field theory. It uses public headers of the library only.

file(GLOB_RECURSE ONEHOP_LATTICE_SOURCES CONFIGURE_DEPENDS lattice/*.cc)
add_library(onehop_lattice STATIC ${ONEHOP_LATTICE_SOURCES})
add_library(onehop::onehop_lattice ALIAS onehop_lattice)
target_link_libraries(onehop_lattice PUBLIC onehop)
target_include_directories(onehop_lattice PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
onehop_compile_options(onehop_lattice)
# Gauge fields and averages of links must have the same bits on every processor, so a product and a sum must not be contracted to
# one rounding. Despite -ffp-contract=off, g++ 12 contracts products of complex numbers (vfmaddsub) when it vectorises a loop, so
# -fno-tree-vectorize is needed; the loops use explicit vectors (lattice/geometry/site_loop.h). The ABI warning about vector
# arguments (-Wpsabi) is off, because only inlined functions have such arguments.
set(_exact lattice/gauge/clover_leaves.cc lattice/gauge/fat_links.cc lattice/gauge/fixing.cc lattice/gauge/flow.cc lattice/gauge/gauge.cc
  lattice/gauge/hmc.cc lattice/gauge/improved_force.cc lattice/gauge/loops.cc lattice/gauge/smearing.cc)
set_source_files_properties(${_exact}
  PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-fno-tree-vectorize;-Wno-psabi;${ONEHOP_FLATTENED_OPTIONS}")
# A loop's speed depends on where it begins in a line of the instruction cache, by up to 12 %: functions begin at a line, so that
# what is linked before them has no influence (measured: one application of the Wilson operator, 12 numbers a link).
set(_kernel -O3 -falign-functions=64 -Wno-psabi)
# These sources have loops over SIMD vectors (lattice/support/best_loop.h).
set_source_files_properties(lattice/solver/vector_loops.cc lattice/staggered/dslash_kernel_double.cc lattice/staggered/dslash_kernel_single.cc lattice/staggered/dslash_kernel_half.cc
                            lattice/wilson/nucleon.cc
                            PROPERTIES COMPILE_OPTIONS "${_kernel};${ONEHOP_FLATTENED_OPTIONS}")
# The same loops over arrays, compiled once for each kind of processor (lattice/support/processor.h). Products and sums are in
# different functions there, so that clang contracts them only if it is told to; g++ does by itself.
set_source_files_properties(lattice/su3/su3_kernels_portable.cc lattice/su3/su3_kernels_avx2.cc lattice/su3/su3_kernels_avx512.cc
  lattice/wilson/wilson_kernel_portable.cc lattice/wilson/wilson_kernel_avx2.cc lattice/wilson/wilson_kernel_avx512.cc
  PROPERTIES COMPILE_OPTIONS "${_kernel};-fno-math-errno;-ffp-contract=fast;${ONEHOP_VECTOR_OPTIONS}")
# Under the sanitizers g++ would need minutes for each of these sources. Most of that time is for checking every lane for undefined
# behaviour, which is therefore off. The loops for AVX2 and AVX-512 are not instrumented at all: they have the same source as the
# portable ones, which are. -O1 overrides -O3 and takes a sixth of the time for loops that the address checks have made long.
if(ONEHOP_SANITIZE)
  set_property(SOURCE ${_exact} lattice/su3/su3_kernels_portable.cc lattice/wilson/wilson_kernel_portable.cc
    APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=undefined")
  set_property(SOURCE lattice/su3/su3_kernels_avx2.cc lattice/su3/su3_kernels_avx512.cc lattice/wilson/wilson_kernel_avx2.cc
    lattice/wilson/wilson_kernel_avx512.cc APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=all")
  set_property(SOURCE ${_exact} lattice/staggered/dslash_kernel_double.cc
    lattice/staggered/dslash_kernel_half.cc lattice/staggered/dslash_kernel_single.cc lattice/wilson/wilson_kernel_portable.cc
    APPEND PROPERTY COMPILE_OPTIONS "-O1")
endif()
onehop_precompile(onehop_lattice)
