# Reductions and other collectives on tensors: on top of the library's public headers only.

file(GLOB ONEHOP_COLLECTIVES_SOURCES CONFIGURE_DEPENDS collectives/*.cc)
add_library(onehop_collectives STATIC ${ONEHOP_COLLECTIVES_SOURCES})
add_library(onehop::onehop_collectives ALIAS onehop_collectives)
target_link_libraries(onehop_collectives PUBLIC onehop PRIVATE $<BUILD_INTERFACE:onehop_json>)
target_include_directories(onehop_collectives PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
onehop_compile_options(onehop_collectives)
# Bitwise the same on every processor: no product and sum may become one rounding. The vectors are passed to inlined functions
# only, so that how they would be passed to others does not matter.
set_source_files_properties(collectives/reduce.cc PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-Wno-psabi")
onehop_precompile(onehop_collectives)
