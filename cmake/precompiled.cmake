# Precompiled headers: a quarter to a half of the time to compile a file goes into reading the standard library's headers. One
# set for each kind of target, of headers that are not ours, so that no edit here makes everything compile again. Off unless
# asked for: the presets and `pip install` ask for it, but for `dev`, which so finds a source that leaves an #include out. Off
# too where ccache is used: it would see a new file in each clone's precompiled headers.

option(ONEHOP_PRECOMPILED "Precompile the standard library's headers: a faster build from nothing" OFF)

set(ONEHOP_PRECOMPILED_STANDARD <algorithm> <array> <atomic> <bit> <chrono> <cmath> <complex> <cstdint> <cstring> <functional>
    <limits> <map> <memory> <mutex> <numeric> <optional> <span> <sstream> <string> <string_view> <tuple> <unordered_map> <utility>
    <vector>)

# onehop_precompile(TARGET [HEADER...]): the standard library's, and HEADERs on top. Sources with options of their own (other
# instruction sets) are better off without: the compiler would look at the precompiled file and reject it.
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
  if(ARGN OR target STREQUAL "onehop")
    target_precompile_headers(${target} PRIVATE ${ONEHOP_PRECOMPILED_STANDARD} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM onehop)
  endif()
endfunction()
