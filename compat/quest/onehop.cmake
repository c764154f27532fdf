# Builds QuEST with comm.cpp and libonehop_quest instead of QuEST's own two communication sources:
#
#   cmake -S QuEST -B build -DCMAKE_PROJECT_QuEST_INCLUDE=.../compat/quest/onehop.cmake -DONEHOP=FOLDER_OF_LIBONEHOP_QUEST
#
# QuEST's ENABLE_DISTRIBUTION stays OFF, because it would require an MPI.

set(ONEHOP "" CACHE PATH "The folder of libonehop_quest.so")
find_library(ONEHOP_QUEST onehop_quest PATHS "${ONEHOP}" NO_DEFAULT_PATH)
if(NOT ONEHOP_QUEST)
  message(FATAL_ERROR "libonehop_quest.so was not found in '${ONEHOP}'. Give its folder with -DONEHOP=FOLDER.")
endif()
set(ONEHOP_QUEST_SOURCE "${CMAKE_CURRENT_LIST_DIR}/comm.cpp")

function(onehop_replace_communication)
  get_target_property(_sources QuEST SOURCES)
  list(FILTER _sources EXCLUDE REGEX "comm_(config|routines)\\.cpp$")
  set_target_properties(QuEST PROPERTIES SOURCES "${_sources};${ONEHOP_QUEST_SOURCE}")
  cmake_path(GET ONEHOP_QUEST_SOURCE PARENT_PATH _folder)
  set_source_files_properties("${ONEHOP_QUEST_SOURCE}" PROPERTIES INCLUDE_DIRECTORIES "${_folder}/../..")
  target_link_libraries(QuEST PRIVATE "${ONEHOP_QUEST}")
endfunction()
cmake_language(DEFER CALL onehop_replace_communication)
