# The fuzz targets of the readers in C++: one program per source in tests/fuzz/readers, with clang's libFuzzer. Only the readers'
# own sources are compiled, with instrumentation.

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "ONEHOP_FUZZ needs clang, which has libFuzzer; found ${CMAKE_CXX_COMPILER_ID}. Run `make fuzz`.")
endif()

file(GLOB ONEHOP_FUZZED_SOURCES CONFIGURE_DEPENDS src/base/*.cc src/schedule/*.cc src/schedule/patterns/*.cc machine/model/*.cc
     quantum/circuit/*.cc quantum/language/*/*.cc)
list(APPEND ONEHOP_FUZZED_SOURCES src/codec/codec.cc src/channel/tuning.cc src/channel/wait.cc collectives/reduce_table.cc
     quantum/state/observable.cc)
add_library(onehop_fuzzed STATIC ${ONEHOP_FUZZED_SOURCES})
target_include_directories(onehop_fuzzed PUBLIC include ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(onehop_fuzzed PUBLIC onehop_json Threads::Threads ${CMAKE_DL_LIBS})
target_compile_options(onehop_fuzzed PUBLIC -fsanitize=fuzzer-no-link)
set_source_files_properties(src/base/version.cc PROPERTIES COMPILE_DEFINITIONS ONEHOP_VERSION="${PROJECT_VERSION}")

set(ONEHOP_FUZZ_TARGETS schedule tuning reduce_tables machine pauli qasm)
foreach(target IN LISTS ONEHOP_FUZZ_TARGETS)
  add_executable(fuzz_${target} tests/fuzz/readers/${target}.cc tests/fuzz/readers/main.cc)
  target_link_libraries(fuzz_${target} PRIVATE onehop_fuzzed)
  # Some of these sources also have functions that need the codecs or the simulator. No reader calls them, so they stay
  # unresolved; a call would crash, and so be a finding.
  target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer -no-pie -Wl,--unresolved-symbols=ignore-all)
endforeach()
