# The C++ tests, tests/FOLDER/test_NOUN.cc, in one program. Each test case is a test of ctest.

enable_testing()
find_package(GTest)
if(NOT GTest_FOUND)
  message(FATAL_ERROR "GoogleTest is missing. Install it (Debian, Ubuntu: apt-get install libgtest-dev), "
                      "or configure with -DONEHOP_TESTS=OFF.")
endif()
include(GoogleTest)

# Every public header must compile by itself: there is one source per header, which includes nothing else. They are built only if
# warnings are errors, as in CI.
file(GLOB ONEHOP_HEADERS CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/include"
     include/onehop/*.h include/onehop/*/*.h)
# onehop/mpi.h needs an mpi.h.
list(REMOVE_ITEM ONEHOP_HEADERS onehop/mpi.h)
foreach(header IN LISTS ONEHOP_HEADERS)
  string(MAKE_C_IDENTIFIER "${header}" _name)
  file(CONFIGURE OUTPUT "headers/${_name}.cc" CONTENT "#include <@header@>\n" @ONLY)
  list(APPEND ONEHOP_HEADER_SOURCES "${CMAKE_CURRENT_BINARY_DIR}/headers/${_name}.cc")
endforeach()
add_library(onehop_headers OBJECT ${ONEHOP_HEADER_SOURCES})
if(NOT ONEHOP_WERROR OR ONEHOP_SANITIZE)
  set_target_properties(onehop_headers PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
target_link_libraries(onehop_headers PRIVATE onehop)
onehop_compile_options(onehop_headers)

file(GLOB ONEHOP_TEST_SOURCES CONFIGURE_DEPENDS tests/*/*.cc tests/quantum/language/*.cc tests/device/standin/standin.cc)
list(FILTER ONEHOP_TEST_SOURCES EXCLUDE REGEX "/tests/(mpi|compat)/")
set(_subjects onehop onehop_lattice onehop_poisson onehop_quantum onehop_collectives)
# The thread sanitizer finds races between threads, so its build leaves out the parts that run on one thread: machines, schedules,
# codecs, the reader of OpenQASM, the soak and the examples here, and the drop-in interfaces by the preset.
if(ONEHOP_SANITIZE MATCHES "thread")
  list(FILTER ONEHOP_TEST_SOURCES EXCLUDE REGEX "/tests/(codec|machine|pmix|schedule|quantum/language)/")
  set_target_properties(onehop_machine PROPERTIES EXCLUDE_FROM_ALL ON)
else()
  list(APPEND _subjects onehop_machine)
endif()
add_executable(onehop_tests ${ONEHOP_TEST_SOURCES})
target_include_directories(onehop_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(onehop_tests PRIVATE ${_subjects} onehop_json GTest::gtest GTest::gtest_main)
onehop_compile_options(onehop_tests)
# Tests are compiled more often than they run: -O1 takes two thirds of the time of -O3, and with the checks of a sanitizer -O0 takes
# half of the time of -O1.
set(_quick_to_compile $<$<CONFIG:Release>:-O1>)
if(ONEHOP_SANITIZE)
  set(_quick_to_compile -O0)
  # They compare megabytes byte by byte.
  file(GLOB _long_tests tests/collectives/*.cc)
  set_source_files_properties(${_long_tests} PROPERTIES COMPILE_OPTIONS "-O1")
endif()
target_compile_options(onehop_tests PRIVATE ${_quick_to_compile})
# This test compares vectors with scalars bit by bit.
set_source_files_properties(tests/lattice/test_link_update.cc PROPERTIES COMPILE_OPTIONS "-ffp-contract=off;-Wno-psabi")
onehop_precompile(onehop_tests <gtest/gtest.h>)

# Stand-ins for the drivers of cards, which tests load in their place.
foreach(kind cuda hip)
  add_library(onehop_standin_${kind} SHARED tests/device/standin/driver.cc src/device/kernels.cc)
  target_include_directories(onehop_standin_${kind} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} include)
  target_link_libraries(onehop_standin_${kind} PRIVATE Threads::Threads)
  onehop_compile_options(onehop_standin_${kind})
  set_target_properties(onehop_standin_${kind} PROPERTIES CXX_VISIBILITY_PRESET hidden OUTPUT_NAME standin_${kind})
  add_dependencies(onehop_tests onehop_standin_${kind})
  target_compile_definitions(onehop_tests PRIVATE STANDIN_${kind}="$<TARGET_FILE:onehop_standin_${kind}>")
endforeach()
target_compile_features(onehop_standin_cuda PRIVATE cxx_std_20)
target_compile_features(onehop_standin_hip PRIVATE cxx_std_20)
target_compile_definitions(onehop_standin_hip PRIVATE STANDIN_HIP)

# The thread sanitizer of g++ 12 cannot map its shadow memory if the kernel randomises addresses with more than 28 bits.
if(ONEHOP_SANITIZE MATCHES "thread")
  find_program(ONEHOP_SETARCH setarch)
  if(ONEHOP_SETARCH)
    set_target_properties(onehop_tests PROPERTIES CROSSCOMPILING_EMULATOR "${ONEHOP_SETARCH};-R")
  endif()
endif()
# What the thread sanitizer must find: two faults that are planted into sums and plans of cards, and none without them.
if(ONEHOP_SANITIZE MATCHES "thread")
  add_executable(onehop_planted tests/device/faults/planted.cc)
  target_include_directories(onehop_planted PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(onehop_planted PRIVATE Threads::Threads)
  if(ONEHOP_SETARCH)
    set_target_properties(onehop_planted PROPERTIES CROSSCOMPILING_EMULATOR "${ONEHOP_SETARCH};-R")
  endif()
  add_dependencies(onehop_tests onehop_planted)
  foreach(what sums plans)
    foreach(fault none relaxed_flag missing_barrier)
      add_test(NAME Device.planted.${what}.${fault} COMMAND onehop_planted ${fault} ${what})
      set_tests_properties(Device.planted.${what}.${fault} PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION "WARNING: ThreadSanitizer: data race")
    endforeach()
    set_tests_properties(Device.planted.${what}.none PROPERTIES PASS_REGULAR_EXPRESSION "^right results")
  endforeach()
endif()

# The tests are listed when ctest starts, so that a test program that cannot start fails the test run and not the build.
# Their names contain the numbers of parameters, not their values, because some values are addresses, which differ from run to
# run. A failing test prints the values.
set(_environment "VIRTUAL_ENV=${CMAKE_CURRENT_SOURCE_DIR}/.venv")
if(NOT ONEHOP_SANITIZE)
  gtest_discover_tests(onehop_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       PROPERTIES TIMEOUT 60 ENVIRONMENT "${_environment}")
else()
  # With a sanitizer a process takes longer to start than most tests, so a test of ctest is every 24th test case. How good the
  # searches are that compute for minutes is left to the other builds. The thread sanitizer makes some tests twenty times slower.
  set(_searches "MapExact.*:Mapping.RandomGrids*:Mapping.IsWithin*:Placement.IsNear*:Placement.Bounds*")
  foreach(shard RANGE 23)
    add_test(NAME onehop_tests.${shard} COMMAND onehop_tests --gtest_filter=-${_searches}:*Device*)
    set_tests_properties(onehop_tests.${shard} PROPERTIES TIMEOUT 600
                         ENVIRONMENT "${_environment};GTEST_TOTAL_SHARDS=24;GTEST_SHARD_INDEX=${shard}")
  endforeach()
  foreach(shard RANGE 3)
    add_test(NAME Device.${shard} COMMAND onehop_tests --gtest_filter=*Device*)
    set_tests_properties(Device.${shard} PROPERTIES TIMEOUT 600
                         ENVIRONMENT "${_environment};GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
  endforeach()
endif()
# The kernels compile for all cards. pytest runs this as well; what has not changed is not compiled again.
set(_pytest "${CMAKE_CURRENT_SOURCE_DIR}/.venv/bin/pytest")
if(NOT ONEHOP_SANITIZE AND EXISTS "${_pytest}")
  add_test(NAME Device.assembly COMMAND "${_pytest}" -q tests/device/test_assembly.py WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set_tests_properties(Device.assembly PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 5)
endif()

# The MPI tests are a program that an MPI launcher starts as several ranks. Building it needs no MPI; without a launcher the tests
# are skipped.
file(GLOB ONEHOP_MPI_TEST_SOURCES CONFIGURE_DEPENDS tests/mpi/*.cc tests/support/transport_suite.cc)
add_executable(onehop_mpi_tests ${ONEHOP_MPI_TEST_SOURCES})
target_include_directories(onehop_mpi_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(onehop_mpi_tests PRIVATE onehop_bench onehop_measure onehop_collectives GTest::gtest)
onehop_compile_options(onehop_mpi_tests)
target_compile_options(onehop_mpi_tests PRIVATE ${_quick_to_compile})
onehop_precompile(onehop_mpi_tests FROM onehop_tests)
if(ONEHOP_SANITIZE MATCHES "thread")
  set(_kinds "")  # the thread sanitizer reports false races in an MPI library that is not instrumented
  set_target_properties(onehop_mpi_tests onehop_bench onehop_measure PROPERTIES EXCLUDE_FROM_ALL ON)
else()
  set(_kinds open_mpi mpich)
endif()
if(_kinds)
  add_test(NAME mpi.standard.2_ranks
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/run.sh standard 2 $<TARGET_FILE:onehop_mpi_tests>)
endif()
foreach(kind IN LISTS _kinds)
  foreach(ranks 2 4)
    add_test(NAME mpi.${kind}.${ranks}_ranks
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/run.sh ${kind} ${ranks} $<TARGET_FILE:onehop_mpi_tests>)
  endforeach()
  add_test(NAME mpi.${kind}.4_ranks_on_2_hosts
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/run.sh --hosts ${kind} 4 $<TARGET_FILE:onehop_mpi_tests>)
  if(kind STREQUAL "open_mpi")
    # The address sanitizer crashes in UCX's transport cma (tests/ucx/test_transport.cc).
    set(_variables "")
    if(ONEHOP_SANITIZE MATCHES "address")
      set(_variables --variable UCX_TLS=^cma)
    endif()
    add_test(NAME mpi.${kind}.4_ranks_on_2_emulated_hosts
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/hosts/run.py ${_variables} $<TARGET_FILE:onehop_mpi_tests>)
    # Three links are three rails of the transport over UCX.
    add_test(NAME mpi.${kind}.2_ranks_over_3_links
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/hosts/run.py --per-host 1 --links 3 ${_variables}
                     $<TARGET_FILE:onehop_mpi_tests> --gtest_filter=*OverUcx*)
    add_test(NAME mpi.${kind}.few_tags
             COMMAND ${CMAKE_COMMAND} -E env ONEHOP_TEST_MPI_TAGS=60
                     ${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/run.sh ${kind} 2 $<TARGET_FILE:onehop_mpi_tests>
                     --gtest_filter=MpiChannels.NeverShare*)
    add_test(NAME mpi.${kind}.one_rank_killed
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/run.sh --survivors ${kind} 3 $<TARGET_FILE:onehop_mpi_tests>)
  endif()
  foreach(how failing leaving)
    add_test(NAME mpi.${kind}.one_rank_${how}
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/mpi/run.sh --ends ${kind} 3 $<TARGET_FILE:onehop_mpi_tests> ${how})
  endforeach()
endforeach()
get_property(_tests DIRECTORY PROPERTY TESTS)
list(FILTER _tests INCLUDE REGEX "^mpi\\.")
if(_tests)
  set_tests_properties(${_tests} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 180 PROCESSORS 2)
endif()

# The trials of the soak whose ranks are forked from one process (tests/soak/native.py).
file(GLOB ONEHOP_SOAK_SOURCES CONFIGURE_DEPENDS tests/soak/native/*.cc)
add_executable(onehop_soak ${ONEHOP_SOAK_SOURCES})
target_include_directories(onehop_soak PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(onehop_soak PRIVATE onehop onehop_collectives)
onehop_compile_options(onehop_soak)
if(ONEHOP_SANITIZE)
  set_target_properties(onehop_soak PROPERTIES EXCLUDE_FROM_ALL ON)  # no test starts it
endif()

# Each example must compile, run on one rank, and pass its own check.
file(GLOB ONEHOP_EXAMPLES CONFIGURE_DEPENDS examples/*.cc)
list(FILTER ONEHOP_EXAMPLES EXCLUDE REGEX "/mpi_")  # needs mpi.h; tests/packaging builds it
if(ONEHOP_SANITIZE MATCHES "thread")
  set(ONEHOP_EXAMPLES "")
endif()
foreach(source IN LISTS ONEHOP_EXAMPLES)
  cmake_path(GET source STEM _name)
  add_executable(example_${_name} ${source})
  target_link_libraries(example_${_name} PRIVATE onehop onehop_lattice onehop_poisson onehop_quantum)
  onehop_compile_options(example_${_name})
  add_test(NAME example_${_name} COMMAND example_${_name})
  set_tests_properties(example_${_name} PROPERTIES TIMEOUT 60)
endforeach()
