# nlohmann/json as the target onehop_json: from the system, from the package `nlohmann-json` of the Python that `python3` starts, or
# else downloaded. Only .cc files use it, never a public header.

add_library(onehop_json INTERFACE)
find_package(nlohmann_json 3.10 QUIET)
if(nlohmann_json_FOUND)
  target_link_libraries(onehop_json INTERFACE nlohmann_json::nlohmann_json)
  return()
endif()
# Not find_package(Python), which would keep the first Python that it finds, although another one has the package by the next try.
set(_python python3)
if(Python_EXECUTABLE)
  set(_python "${Python_EXECUTABLE}")
endif()
execute_process(
  COMMAND "${_python}" -c "import nlohmann_json, os; print(os.path.dirname(nlohmann_json.__file__))"
  OUTPUT_VARIABLE _json_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(EXISTS "${_json_package}/include/nlohmann/json.hpp")
  target_include_directories(onehop_json SYSTEM INTERFACE "${_json_package}/include")
  return()
endif()
include(FetchContent)
set(_archive ${CMAKE_CURRENT_BINARY_DIR}/nlohmann_json-3.11.3.tar.xz)
if(NOT FETCHCONTENT_SOURCE_DIR_NLOHMANN_JSON AND NOT EXISTS ${_archive})
  # Not by FetchContent, which tries for minutes and then prints a hundred lines.
  file(DOWNLOAD https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz ${_archive} STATUS _status)
  if(NOT _status MATCHES "^0;")
    file(REMOVE ${_archive})
    list(GET _status 1 _why)
    message(FATAL_ERROR "nlohmann/json was found neither as a CMake package nor in ${_python}, and its download failed: ${_why}. Run `pip "
                        "install nlohmann-json` or `apt-get install nlohmann-json3-dev`, or pass -DFETCHCONTENT_SOURCE_DIR_NLOHMANN_JSON=FOLDER")
  endif()
endif()
FetchContent_Declare(nlohmann_json URL ${_archive}
                     URL_HASH SHA256=d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
FetchContent_MakeAvailable(nlohmann_json)
target_include_directories(onehop_json SYSTEM INTERFACE "${nlohmann_json_SOURCE_DIR}/include")
