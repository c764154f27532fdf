# Drop-in interfaces for existing programs. compat/NAME.h and compat/NAME.cc (with parts in compat/NAME/ where one file would be long)
# become libonehop_NAME, which contains the parts of onehop that it needs and exports only the functions of the interface.
# compat/shared/ holds the parts that several interfaces use. Most of their tests are C programs, so a C compiler is required.

# The wheel has QMP alone, whose users build against it.
file(GLOB ONEHOP_COMPAT_HEADERS CONFIGURE_DEPENDS compat/*.h)
include(CheckLanguage)
if(SKBUILD)
  list(FILTER ONEHOP_COMPAT_HEADERS INCLUDE REGEX "/qmp\\.h$")
else()
  check_language(C)
endif()
if(SKBUILD OR CMAKE_C_COMPILER)
  set(_can ON)
else()
  set(_can OFF)
endif()
option(ONEHOP_COMPAT "Build the drop-in interfaces for existing programs (needs a C compiler)" ${_can})
if(NOT ONEHOP_COMPAT)
  return()
endif()
if(NOT SKBUILD)
  enable_language(C)
endif()

file(GLOB _shared CONFIGURE_DEPENDS compat/shared/*.cc)
add_library(onehop_compat_shared STATIC ${_shared})
target_include_directories(onehop_compat_shared PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(onehop_compat_shared PUBLIC onehop)
set_target_properties(onehop_compat_shared PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
onehop_compile_options(onehop_compat_shared)

foreach(header IN LISTS ONEHOP_COMPAT_HEADERS)
  cmake_path(GET header STEM _name)
  file(GLOB _sources CONFIGURE_DEPENDS compat/${_name}.cc compat/${_name}/*.cc)
  add_library(onehop_${_name} SHARED ${_sources})
  target_include_directories(onehop_${_name} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/compat>)
  target_link_libraries(onehop_${_name} PRIVATE onehop_compat_shared)
  target_link_options(onehop_${_name} PRIVATE "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/interface.map")
  set_target_properties(onehop_${_name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  onehop_compile_options(onehop_${_name})
  list(APPEND ONEHOP_COMPAT_TARGETS onehop_${_name})
endforeach()
include(qmp)
if(SKBUILD)
  return()
endif()
# It chooses network interfaces (machine/rails).
target_link_libraries(onehop_rdma_comlib PRIVATE onehop_machine)

if(NOT ONEHOP_TESTS)
  return()
endif()
# The test of each interface is one program, which runs as several ranks; the target `onehop_tests` builds it.
file(GLOB _tests CONFIGURE_DEPENDS tests/compat/test_*.c tests/compat/test_*.cc)
foreach(source IN LISTS _tests)
  cmake_path(GET source STEM _test)
  string(REPLACE "test_" "" _name "${_test}")
  file(GLOB _parts CONFIGURE_DEPENDS tests/compat/${_name}/*.c tests/compat/${_name}/*.cc)
  add_executable(${_test} ${source} ${_parts})
  target_include_directories(${_test} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  set_target_properties(${_test} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON)
  target_compile_options(${_test} PRIVATE -Wall -Wextra -Wpedantic $<$<BOOL:${ONEHOP_WERROR}>:-Werror>)
  target_link_libraries(${_test} PRIVATE onehop_${_name} Threads::Threads m)
  add_dependencies(onehop_tests ${_test})
  foreach(ranks 1 2 4)
    add_test(NAME compat.${_name}.${ranks}_ranks
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/compat/run.sh ${ranks} $<TARGET_FILE:${_test}>)
  endforeach()
  add_test(NAME compat.${_name}.errors
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/compat/errors.sh 1 $<TARGET_FILE:${_test}>)
endforeach()
add_test(NAME compat.rdma_comlib.3_ranks
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/compat/run.sh 3 $<TARGET_FILE:test_rdma_comlib>)
add_test(NAME compat.rdma_comlib.errors_3_ranks
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/compat/errors.sh 3 $<TARGET_FILE:test_rdma_comlib>)

# compat/quest/comm.cpp is compiled inside QuEST. Its test compiles it with headers of the same names, which include a stand-in.
foreach(header comm/comm_config comm/comm_indices comm/comm_routines core/errors gpu/gpu_config)
  file(CONFIGURE OUTPUT "quest_headers/quest/src/${header}.hpp" CONTENT "#include \"tests/compat/quest/stand_in.h\"\n" @ONLY)
endforeach()
target_sources(test_quest PRIVATE compat/quest/comm.cpp)
target_include_directories(test_quest PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/quest_headers" "${CMAKE_CURRENT_SOURCE_DIR}")

# A program that is linked with MPI and with a drop-in interface. The test compiles it when it runs, if MPI is installed.
if(NOT ONEHOP_SANITIZE)
  add_test(NAME compat.qspi.before_mpi_init
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/compat/mpi/run.sh
                   ${CMAKE_CURRENT_SOURCE_DIR}/tests/compat/mpi/qspi_before_init.c ${CMAKE_CURRENT_SOURCE_DIR}/compat
                   $<TARGET_FILE:onehop_qspi>)
  set_tests_properties(compat.qspi.before_mpi_init PROPERTIES SKIP_RETURN_CODE 77)
endif()

# The C interface of onehop itself.
add_executable(test_onehop tests/c/test_onehop.c)
set_target_properties(test_onehop PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
target_compile_options(test_onehop PRIVATE -Wall -Wextra -Wpedantic $<$<BOOL:${ONEHOP_WERROR}>:-Werror>)
target_link_libraries(test_onehop PRIVATE onehop_c)
add_dependencies(onehop_tests test_onehop)
foreach(ranks 1 2 4)
  add_test(NAME compat.c.${ranks}_ranks
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/compat/run.sh ${ranks} $<TARGET_FILE:test_onehop>)
endforeach()
if(NOT ONEHOP_SANITIZE)
  add_test(NAME compat.c.3_ranks_on_3_emulated_hosts
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/hosts/run.py --hosts 3 --per-host 1 $<TARGET_FILE:test_onehop>)
  set_tests_properties(compat.c.3_ranks_on_3_emulated_hosts PROPERTIES SKIP_RETURN_CODE 77)
endif()

# The commands of the pages. They start ranks with the Python package of this build.
if(ONEHOP_INPLACE AND NOT ONEHOP_SANITIZE)
  foreach(name qmp qspi quest rdma_comlib)
    add_test(NAME compat.${name}.recipe
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/compat/recipes.py compat_${name} $<TARGET_FILE_DIR:onehop_${name}>)
    set_tests_properties(compat.${name}.recipe PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endif()

get_property(_tests DIRECTORY PROPERTY TESTS)
list(FILTER _tests INCLUDE REGEX "^compat\\.")
# On a busy machine, and with a sanitizer, some take ten times as long as usual.
set_tests_properties(${_tests} PROPERTIES TIMEOUT 300 PROCESSORS 2)
