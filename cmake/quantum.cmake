# State vectors and density matrices. They use public headers of the library only.

file(GLOB_RECURSE ONEHOP_QUANTUM_SOURCES CONFIGURE_DEPENDS quantum/*.cc)
add_library(onehop_quantum STATIC ${ONEHOP_QUANTUM_SOURCES})
add_library(onehop::onehop_quantum ALIAS onehop_quantum)
target_link_libraries(onehop_quantum PUBLIC onehop)
target_include_directories(onehop_quantum PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
onehop_compile_options(onehop_quantum)
onehop_precompile(onehop_quantum)
