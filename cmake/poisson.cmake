# The Poisson solver. It uses public headers of the library only.

file(GLOB ONEHOP_POISSON_SOURCES CONFIGURE_DEPENDS poisson/*.cc)
add_library(onehop_poisson STATIC ${ONEHOP_POISSON_SOURCES})
add_library(onehop::onehop_poisson ALIAS onehop_poisson)
target_link_libraries(onehop_poisson PUBLIC onehop)
target_include_directories(onehop_poisson PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
onehop_compile_options(onehop_poisson)
# Results must have the same bits on every processor, so a product and a sum must not be contracted to one rounding. The ABI
# warning about vector arguments (-Wpsabi) is off, because only inlined functions have such arguments.
set_source_files_properties(poisson/poisson_kernels.cc PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-Wno-psabi")
onehop_precompile(onehop_poisson)
