# The Poisson solver: on top of the library's public headers only.

file(GLOB ONEHOP_POISSON_SOURCES CONFIGURE_DEPENDS poisson/*.cc)
add_library(onehop_poisson STATIC ${ONEHOP_POISSON_SOURCES})
add_library(onehop::onehop_poisson ALIAS onehop_poisson)
target_link_libraries(onehop_poisson PUBLIC onehop)
target_include_directories(onehop_poisson PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
onehop_compile_options(onehop_poisson)
# Bitwise the same on every processor: no product and sum may become one rounding. The vectors of the kernels are passed to
# inlined functions only, so that how they would be passed to others does not matter.
set_source_files_properties(poisson/poisson_kernels.cc PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-Wno-psabi")
onehop_precompile(onehop_poisson)
