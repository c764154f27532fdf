# `cmake --install` installs the C++ library for other CMake projects, which use find_package(onehop) and link onehop::onehop.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/onehop")
install(TARGETS onehop onehop_lattice onehop_poisson onehop_quantum onehop_collectives onehop_machine EXPORT onehop-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp)
install(DIRECTORY include/onehop DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT cpp)
install(EXPORT onehop-targets NAMESPACE onehop:: DESTINATION "${_package_dir}" COMPONENT cpp)
file(CONFIGURE OUTPUT onehop-config.cmake @ONLY CONTENT [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/onehop-targets.cmake")
]])
write_basic_package_version_file(onehop-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/onehop-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/onehop-config-version.cmake"
        DESTINATION "${_package_dir}" COMPONENT cpp)
