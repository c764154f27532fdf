# The timing loops and candidates of `onehop tune` and `onehop tour`, which `onehop bench` uses as well.

file(GLOB ONEHOP_MEASURE_SOURCES CONFIGURE_DEPENDS measure/*.cc measure/mpi/*.cc)
add_library(onehop_measure STATIC ${ONEHOP_MEASURE_SOURCES})
target_include_directories(onehop_measure PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(onehop_measure PUBLIC onehop onehop_lattice onehop_poisson onehop_collectives)
onehop_compile_options(onehop_measure)
# This source has loops over SIMD vectors (lattice/support/best_loop.h).
set_source_files_properties(measure/peak.cc PROPERTIES COMPILE_OPTIONS "-O3;-Wno-psabi;${ONEHOP_FLATTENED_OPTIONS}")
onehop_precompile(onehop_measure)
