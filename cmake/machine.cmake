# Descriptions of machines, the simulator of schedules on them, maps of ranks, and rails. They use public headers of the
# library only.

file(GLOB ONEHOP_MACHINE_SOURCES CONFIGURE_DEPENDS machine/*.cc machine/*/*.cc)
add_library(onehop_machine STATIC ${ONEHOP_MACHINE_SOURCES})
add_library(onehop::onehop_machine ALIAS onehop_machine)
target_link_libraries(onehop_machine PUBLIC onehop PRIVATE $<BUILD_INTERFACE:onehop_json>)
target_include_directories(onehop_machine PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
onehop_compile_options(onehop_machine)
onehop_precompile(onehop_machine)
