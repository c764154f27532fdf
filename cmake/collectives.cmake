# Reductions and other collectives on tensors. They use public headers of the library only.

file(GLOB ONEHOP_COLLECTIVES_SOURCES CONFIGURE_DEPENDS collectives/*.cc)
add_library(onehop_collectives STATIC ${ONEHOP_COLLECTIVES_SOURCES})
add_library(onehop::onehop_collectives ALIAS onehop_collectives)
target_link_libraries(onehop_collectives PUBLIC onehop PRIVATE $<BUILD_INTERFACE:onehop_json>)
target_include_directories(onehop_collectives PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
onehop_compile_options(onehop_collectives)
# Results must have the same bits on every processor, so a product and a sum must not be contracted to one rounding. The ABI
# warning about vector arguments (-Wpsabi) is off, because only inlined functions have such arguments.
set_source_files_properties(collectives/reduce.cc collectives/number_combine.cc PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-Wno-psabi")
onehop_precompile(onehop_collectives)
