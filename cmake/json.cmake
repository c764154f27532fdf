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
message(STATUS "nlohmann/json was found neither as a CMake package nor in ${_python}, so it is downloaded. Without a network: `pip install "
               "nlohmann-json`, `apt-get install nlohmann-json3-dev`, or -DFETCHCONTENT_SOURCE_DIR_NLOHMANN_JSON=FOLDER")
include(FetchContent)
FetchContent_Declare(nlohmann_json URL https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
                     URL_HASH SHA256=d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
FetchContent_MakeAvailable(nlohmann_json)
target_include_directories(onehop_json SYSTEM INTERFACE "${nlohmann_json_SOURCE_DIR}/include")
