# Reductions and other collectives on tensors: on top of the library's public headers only.

file(GLOB ONEHOP_TENSORS_SOURCES CONFIGURE_DEPENDS tensors/*.cc)
add_library(onehop_tensors STATIC ${ONEHOP_TENSORS_SOURCES})
add_library(onehop::onehop_tensors ALIAS onehop_tensors)
target_link_libraries(onehop_tensors PUBLIC onehop PRIVATE $<BUILD_INTERFACE:onehop_json>)
target_include_directories(onehop_tensors PRIVATE tensors)
onehop_compile_options(onehop_tensors)
# Bitwise the same on every processor: no product and sum may become one rounding. The vectors are passed to inlined functions
# only, so that how they would be passed to others does not matter.
set_source_files_properties(tensors/fold.cc PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-Wno-psabi")
onehop_precompile(onehop_tensors)
