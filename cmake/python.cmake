# The Python extension onehop._core: one bindings file per noun in python/bindings.

# With Python 3.12 or newer, nanobind can use Python's stable ABI: one extension serves all later versions. An older Python has no
# such ABI for it, and nanobind then builds for that version.
option(ONEHOP_STABLE_ABI "Build the extension for Python's stable ABI (needs Python 3.12 or newer)" OFF)
set(_sabi "")
if(ONEHOP_STABLE_ABI)
  set(_sabi Development.SABIModule)
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module ${_sabi})
if(NOT Python_Development.Module_FOUND)
  message(FATAL_ERROR
    "Python.h of ${Python_EXECUTABLE} (Python ${Python_VERSION}) is missing. Install it (Debian, Ubuntu: apt-get install "
    "python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}-dev), or configure with -DONEHOP_PYTHON=OFF for C++ alone.")
endif()
execute_process(
  COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
  OUTPUT_VARIABLE _nanobind_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _nanobind_missing)
if(_nanobind_missing)
  message(FATAL_ERROR "nanobind is missing in ${Python_EXECUTABLE}. Install it with `pip install nanobind`, "
                      "or configure with -DONEHOP_PYTHON=OFF for C++ alone.")
endif()
find_package(nanobind CONFIG REQUIRED PATHS "${_nanobind_dir}" NO_DEFAULT_PATH)

file(GLOB ONEHOP_BINDINGS CONFIGURE_DEPENDS python/bindings/*.cc)
set(_abi "")
if(ONEHOP_STABLE_ABI)
  set(_abi STABLE_ABI)
endif()
nanobind_add_module(_core NB_STATIC ${_abi} ${ONEHOP_BINDINGS})
# The sources of nanobind include the same headers: compiled as one they take a quarter of the time.
foreach(target IN ITEMS nanobind-static nanobind-static-abi3)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endforeach()
# nanobind 3.1 uses stderr without including <cstdio>, which libc++ does not bring with other headers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  foreach(target IN ITEMS nanobind-static nanobind-static-abi3 _core)
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-include cstdio>)
    endif()
  endforeach()
endif()
option(ONEHOP_LIBC_MEMORY "Call memcpy and its like of glibc, where the compiler would link its own (zig)" OFF)
if(ONEHOP_LIBC_MEMORY)
  target_sources(_core PRIVATE python/libc_memory.cc)
  set_source_files_properties(python/libc_memory.cc PROPERTIES COMPILE_OPTIONS "-fno-builtin" SKIP_PRECOMPILE_HEADERS ON)
endif()
target_link_libraries(_core PRIVATE onehop onehop_measure onehop_lattice onehop_poisson onehop_quantum onehop_collectives onehop_machine)
# The launcher creates the control memory of the ranks, and `onehop doctor` looks for MPI. Both use private headers.
target_include_directories(_core PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
# The extension exports its entry point and the library in it, which onehop_bench._native uses under the name of ONEHOP_CORE_NAME. Its
# own references stay its own; zig does not know -Bsymbolic-functions.
set(ONEHOP_CORE_NAME libonehop_core.so)
target_link_options(_core PRIVATE "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/extension.map"
                    LINKER:-soname,${ONEHOP_CORE_NAME} LINKER:-Bsymbolic)
set_target_properties(_core PROPERTIES LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cmake/extension.map")
onehop_compile_options(_core)
onehop_precompile(_core <nanobind/nanobind.h> <nanobind/stl/string.h> <nanobind/stl/vector.h>)
set(_stub_folder "${CMAKE_CURRENT_BINARY_DIR}")
if(ONEHOP_INPLACE)
  set(_stub_folder "${CMAKE_CURRENT_SOURCE_DIR}/python/onehop")
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${_stub_folder}")
endif()
install(TARGETS _core LIBRARY DESTINATION onehop COMPONENT python)
# The stub says to editors and type checkers what is in the extension. Only a machine that can import the extension can make it; for
# another one it comes from a build in place, if there is one.
if(CMAKE_CROSSCOMPILING)
  add_custom_target(_core_stub)
  install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/python/onehop/_core.pyi" DESTINATION onehop COMPONENT python OPTIONAL)
else()
  nanobind_add_stub(_core_stub MODULE _core OUTPUT "${_stub_folder}/_core.pyi" PYTHON_PATH $<TARGET_FILE_DIR:_core> DEPENDS _core
                    INCLUDE_PRIVATE)
  install(FILES "${_stub_folder}/_core.pyi" DESTINATION onehop COMPONENT python)
endif()
# The keywords of functions, from the dataclasses of their options.
add_custom_target(_keywords_stub COMMAND ${Python_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/tools/keywords_stub.py"
                  "${CMAKE_CURRENT_SOURCE_DIR}/python/onehop" "${_stub_folder}/_keywords.pyi")
add_dependencies(_core_stub _keywords_stub)
install(FILES "${_stub_folder}/_keywords.pyi" DESTINATION onehop COMPONENT python)
# `onehop docs` shows the pages, and `man onehop` the commands.
foreach(folder IN ITEMS tutorials howto reference performance design)
  file(GLOB _pages CONFIGURE_DEPENDS docs/${folder}/*.md docs/${folder}/*.py docs/${folder}/*.txt docs/${folder}/*.ipynb)
  install(FILES ${_pages} DESTINATION onehop/docs/${folder} COMPONENT python)
endforeach()
file(GLOB _examples CONFIGURE_DEPENDS examples/halo.* examples/mpi_stencil.cc)  # those of the pages
install(FILES ${_examples} DESTINATION onehop/examples COMPONENT python)
add_custom_target(_man_page COMMAND ${Python_EXECUTABLE} "${CMAKE_CURRENT_SOURCE_DIR}/tools/man_page.py"
                  "${CMAKE_CURRENT_SOURCE_DIR}/python/onehop" ${PROJECT_VERSION} "${CMAKE_CURRENT_BINARY_DIR}/onehop.1")
add_dependencies(_core_stub _man_page)
set(_man_folder share/man)
if(SKBUILD)
  set(_man_folder "${SKBUILD_DATA_DIR}/share/man")
endif()
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/onehop.1" DESTINATION "${_man_folder}/man1" COMPONENT python)
