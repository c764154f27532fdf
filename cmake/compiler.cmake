# Supported compilers, and the compile options of every target of the project.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(_oldest 12)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(_oldest 15)
else()
  set(_oldest 0)
endif()
if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS _oldest)
  message(FATAL_ERROR
    "onehop is C++20 and needs g++ 12 or clang++ 15, or newer. Found ${CMAKE_CXX_COMPILER_ID} "
    "${CMAKE_CXX_COMPILER_VERSION} (${CMAKE_CXX_COMPILER}). Install a newer one (Debian, Ubuntu: apt-get install g++-12) "
    "and name it in the environment: CXX=g++-12.")
endif()

# Use ccache if it is installed. It makes paths below this folder relative, so that other clones share its entries.
option(ONEHOP_CCACHE "Compile through ccache if it is installed" ON)
find_program(ONEHOP_CCACHE_PROGRAM ccache)
if(ONEHOP_CCACHE AND ONEHOP_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${ONEHOP_CCACHE_PROGRAM})
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the static library ends up in the Python extension
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)    # for clang-tidy
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

# There is no -march, so that one build runs on every machine of its architecture. Code with wider instructions is chosen at
# run time.
if(ONEHOP_SANITIZE)
  add_compile_options(-fsanitize=${ONEHOP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ONEHOP_SANITIZE})
  # g++ gives wrong warnings for the instrumented code, also in the standard library.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
endif()

# g++ 12 gives wrong warnings for sums of a C string and a std::string (GCC bug 105651). Which of the three depends on what it
# inlines, and so on precompiled headers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>)
endif()

# clang would move multiply-adds past the next product, to where their sum is used, and spill their operands. These options of
# kernels with explicit vectors prevent it.
set(ONEHOP_VECTOR_OPTIONS "")
# Those of sources whose loops have an entry function for each instruction set, with the attributes `flatten` and `target`
# (lattice/support/best_loop.h, lattice/geometry/site_loop.h). All that these functions call must be inlined, because what is not is
# compiled for the baseline. In g++ `flatten` does this. In clang it inlines the first level of calls only, so every call of these
# sources that can be inlined is.
set(ONEHOP_FLATTENED_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT ONEHOP_SANITIZE)
  set(ONEHOP_VECTOR_OPTIONS -mllvm -disable-machine-sink)
  set(ONEHOP_FLATTENED_OPTIONS -mllvm -inline-threshold=1000000 ${ONEHOP_VECTOR_OPTIONS})
endif()

function(onehop_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic $<$<BOOL:${ONEHOP_WERROR}>:-Werror>)
endfunction()
