# nlohmann/json as the target onehop_json, from the system or else from the Python package `nlohmann-json`. Only .cc files use it,
# never a public header.

add_library(onehop_json INTERFACE)
find_package(nlohmann_json 3.10 QUIET)
if(nlohmann_json_FOUND)
  target_link_libraries(onehop_json INTERFACE nlohmann_json::nlohmann_json)
else()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import nlohmann_json, os; print(os.path.dirname(nlohmann_json.__file__))"
    OUTPUT_VARIABLE _json_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(ONEHOP_JSON_INCLUDE "${_json_package}/include")
  if(NOT EXISTS "${ONEHOP_JSON_INCLUDE}/nlohmann/json.hpp")
    message(FATAL_ERROR
      "nlohmann/json was found neither as a CMake package nor in ${Python_EXECUTABLE}. "
      "Install one of them: `pip install nlohmann-json`, or `apt-get install nlohmann-json3-dev`.")
  endif()
  target_include_directories(onehop_json SYSTEM INTERFACE "${ONEHOP_JSON_INCLUDE}")
endif()
