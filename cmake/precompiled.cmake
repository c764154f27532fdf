# Precompiled headers of the standard library. Reading these headers takes a quarter to a half of the time to compile a file. No
# header of this repository is among them, so that an edit does not recompile everything. The presets and `pip install` turn them
# on, except for the preset `dev`, which must find a source with a missing #include. They stay off with ccache, which would take
# the precompiled headers of each clone for different files.

option(ONEHOP_PRECOMPILED "Precompile the headers of the standard library, for a faster build from scratch" OFF)

set(ONEHOP_PRECOMPILED_STANDARD <algorithm> <array> <atomic> <bit> <chrono> <cmath> <complex> <cstdint> <cstring> <functional>
    <limits> <map> <memory> <mutex> <numeric> <optional> <span> <sstream> <string> <string_view> <tuple> <unordered_map> <utility>
    <vector>)

# onehop_precompile(TARGET [FROM OTHER] [HEADER...]): precompiles the headers of the standard library and the given ones for a target,
# or takes those of a target with the same options. Sources with their own compile options (other instruction sets) are left out,
# because the compiler would reject the precompiled file.
function(onehop_precompile target)
  if(NOT ONEHOP_PRECOMPILED OR (ONEHOP_CCACHE AND ONEHOP_CCACHE_PROGRAM))
    return()
  endif()
  get_target_property(_sources ${target} SOURCES)
  get_target_property(_folder ${target} SOURCE_DIR)
  foreach(source IN LISTS _sources)
    get_source_file_property(_options "${source}" DIRECTORY "${_folder}" COMPILE_OPTIONS)
    if(_options)
      set_source_files_properties("${source}" DIRECTORY "${_folder}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  if(ARGV1 STREQUAL "FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  elseif(ARGN OR target STREQUAL "onehop")
    target_precompile_headers(${target} PRIVATE ${ONEHOP_PRECOMPILED_STANDARD} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM onehop)
  endif()
endfunction()
