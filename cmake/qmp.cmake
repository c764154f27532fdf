# The drop-in interface QMP as programs look for it: a folder as QMP's own installation makes it, with qmp.h, the library (also under
# QMP's name), qmp-config, and QMPConfig.cmake with the target QMP::qmp. It is made in the build folder, and installed with the C++
# library and in the Python package; `onehop compat qmp` says where it is.

set(_qmp "${CMAKE_CURRENT_BINARY_DIR}/qmp")
configure_file(compat/qmp.h "${_qmp}/include/qmp.h" COPYONLY)
file(CONFIGURE OUTPUT "${_qmp}/lib/libqmp.so" CONTENT "INPUT(-lonehop_qmp)\n")  # a script for linkers
file(CONFIGURE OUTPUT "${_qmp}/lib/cmake/QMP/QMPConfig.cmake" @ONLY CONTENT [[
cmake_path(SET QMP_PREFIX NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")
if(NOT TARGET QMP::qmp)
  add_library(QMP::qmp SHARED IMPORTED)
  set_target_properties(QMP::qmp PROPERTIES IMPORTED_LOCATION "${QMP_PREFIX}lib/libonehop_qmp.so"
                        INTERFACE_INCLUDE_DIRECTORIES "${QMP_PREFIX}include")
endif()
]])
include(CMakePackageConfigHelpers)
# That of the QMP whose interface this is.
write_basic_package_version_file("${_qmp}/lib/cmake/QMP/QMPConfigVersion.cmake" VERSION 2.5.4 COMPATIBILITY AnyNewerVersion)
set(_config "${_qmp}/bin/qmp-config")
file(CONFIGURE OUTPUT "${_config}" @ONLY CONTENT [[
#!/bin/sh
# What compilers and linkers need for programs that call QMP.
prefix=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
[ $# -gt 0 ] || { echo "usage: qmp-config --prefix|--version|--comms|--cc|--cflags|--copts|--ldflags|--libs ..." >&2; exit 2; }
for word; do
  case $word in
    --prefix | --exec-prefix) echo "$prefix" ;;
    --version) echo 2.5.4 ;;
    --comms) echo onehop ;;
    --cc) echo "${CC:-cc}" ;;
    --cflags) echo "-I$prefix/include" ;;
    --copts) echo ;;
    --ldflags) echo "-L$prefix/lib -Wl,-rpath,$prefix/lib" ;;
    --libs) echo -lonehop_qmp ;;
    *) echo "qmp-config: expected --prefix, --version, --comms, --cc, --cflags, --copts, --ldflags or --libs, found $word" >&2; exit 2 ;;
  esac
done
]])
file(CHMOD "${_config}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
add_custom_command(TARGET onehop_qmp POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
                   $<TARGET_FILE:onehop_qmp> "${_qmp}/lib/$<TARGET_FILE_NAME:onehop_qmp>")

# install_qmp(COMPONENT FOLDER): installs that folder.
function(install_qmp component folder)
  install(DIRECTORY "${_qmp}/" DESTINATION "${folder}" COMPONENT ${component} USE_SOURCE_PERMISSIONS
          PATTERN libonehop_qmp.so EXCLUDE)
  # OPTIONAL: the C++ library may be installed from a build that made no drop-in interface.
  install(TARGETS onehop_qmp LIBRARY DESTINATION "${folder}/lib" COMPONENT ${component} OPTIONAL)
endfunction()
if(SKBUILD)
  install_qmp(python onehop/qmp)
else()
  install_qmp(cpp qmp)
endif()
