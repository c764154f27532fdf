# The contestants and the clockwork of `onehop bench` and `onehop tune`.

file(GLOB ONEHOP_BENCH_SOURCES CONFIGURE_DEPENDS bench/*.cc)
# One of the contestants is the door qspi (compat.cmake makes a library of it), which is here without being a library of its own.
file(GLOB _doors_shared CONFIGURE_DEPENDS compat/shared/*.cc)
add_library(onehop_bench STATIC ${ONEHOP_BENCH_SOURCES} compat/qspi.cc ${_doors_shared})
target_include_directories(onehop_bench PUBLIC bench PRIVATE src lattice compat)
target_link_libraries(onehop_bench PUBLIC onehop onehop_lattice onehop_tensors)
onehop_compile_options(onehop_bench)
# Loops over the compiler's vectors (lattice/simd.h).
set_source_files_properties(bench/read_all.cc PROPERTIES COMPILE_OPTIONS "-O3;-Wno-psabi")
onehop_precompile(onehop_bench)
