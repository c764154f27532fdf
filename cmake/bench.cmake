# The candidates and the timing loops of `onehop bench` and `onehop tune`.

file(GLOB ONEHOP_BENCH_SOURCES CONFIGURE_DEPENDS bench/*.cc bench/mpi/*.cc)
# One of the candidates is the drop-in interface qspi. compat.cmake builds it as a library; this target contains its sources.
file(GLOB _compat_shared CONFIGURE_DEPENDS compat/shared/*.cc)
add_library(onehop_bench STATIC ${ONEHOP_BENCH_SOURCES} compat/qspi.cc ${_compat_shared})
target_include_directories(onehop_bench PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(onehop_bench PUBLIC onehop onehop_lattice onehop_poisson onehop_collectives)
onehop_compile_options(onehop_bench)
# This source has loops over SIMD vectors (lattice/support/best_loop.h).
set_source_files_properties(bench/read_all.cc PROPERTIES COMPILE_OPTIONS "-O3;-Wno-psabi;${ONEHOP_FLATTENED_OPTIONS}")
onehop_precompile(onehop_bench)
