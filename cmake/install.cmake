# `cmake --install` installs the C++ library for other projects: CMake projects use find_package(onehop) and link onehop::onehop, others
# ask pkg-config for onehop. A project that contains this one (add_subdirectory) links the same targets and installs nothing of it,
# unless it sets ONEHOP_INSTALL.

option(ONEHOP_INSTALL "Install the C++ library" ${PROJECT_IS_TOP_LEVEL})
if(NOT ONEHOP_INSTALL)
  return()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/onehop")
# In the order of linking: each needs only those behind it.
set(_libraries onehop)
set(_other_headers "")
foreach(part IN ITEMS machine collectives poisson lattice quantum)
  if(part IN_LIST ONEHOP_PARTS)
    list(PREPEND _libraries onehop_${part})
  else()
    list(APPEND _other_headers PATTERN ${part} EXCLUDE)
  endif()
endforeach()
install(TARGETS ${_libraries} EXPORT onehop-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp)
if(TARGET onehop_c)
  install(TARGETS onehop_c EXPORT onehop-targets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp)
  install(FILES include/onehop.h include/onehop_mpi.h "${CMAKE_CURRENT_BINARY_DIR}/onehop.f90"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT cpp)
endif()
install(DIRECTORY include/onehop DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT cpp ${_other_headers})
install(EXPORT onehop-targets NAMESPACE onehop:: DESTINATION "${_package_dir}" COMPONENT cpp)
file(CONFIGURE OUTPUT onehop-config.cmake @ONLY CONTENT [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/onehop-targets.cmake")
]])
write_basic_package_version_file(onehop-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/onehop-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/onehop-config-version.cmake"
        DESTINATION "${_package_dir}" COMPONENT cpp)

# The libraries are static, so that all of them and those of the system belong to Libs. Paths are relative to the file, which may
# be installed anywhere.
list(TRANSFORM _libraries PREPEND "-l" OUTPUT_VARIABLE _flags)
list(JOIN _flags " " _flags)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig"
           OUTPUT_VARIABLE _to_prefix)
file(CONFIGURE OUTPUT onehop.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@_to_prefix@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: onehop
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Libs: -L${libdir} @_flags@ -pthread -ldl
Cflags: -I${includedir} -std=c++20
]])
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/onehop.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT cpp)
