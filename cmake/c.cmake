# The C interface: libonehop_c, which contains the parts of onehop that it needs, and the source of the Fortran module.

file(GLOB _sources CONFIGURE_DEPENDS c/*.cc)
add_library(onehop_c SHARED ${_sources} compat/shared/memory.cc)
add_library(onehop::onehop_c ALIAS onehop_c)
target_include_directories(onehop_c PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
                                    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(onehop_c PRIVATE ONEHOP_BUILDS_C)
target_link_libraries(onehop_c PRIVATE $<BUILD_INTERFACE:onehop_collectives>)
target_link_options(onehop_c PRIVATE "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/interface.map")
set_target_properties(onehop_c PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON SOVERSION 1)
onehop_compile_options(onehop_c)

# The procedures on arrays are the same for all types.
set(_types "int32|integer(int32)|ONEHOP_INT32" "int64|integer(int64)|ONEHOP_INT64" "real32|real(real32)|ONEHOP_FLOAT"
    "real64|real(real64)|ONEHOP_DOUBLE" "complex32|complex(real32)|10_c_int" "complex64|complex(real64)|11_c_int")
file(READ c/onehop_arrays.f90.in _arrays)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/c/onehop_arrays.f90.in")
string(REGEX MATCHALL "function [a-z_]+_@name@" _operations "${_arrays}")
set(ONEHOP_FORTRAN_PROCEDURES "")
foreach(entry IN LISTS _types)
  string(REGEX MATCH "^(.*)\\|(.*)\\|(.*)$" _ "${entry}")
  set(name "${CMAKE_MATCH_1}")
  set(type "${CMAKE_MATCH_2}")
  set(code "${CMAKE_MATCH_3}")
  string(CONFIGURE "${_arrays}" _made @ONLY)
  string(APPEND ONEHOP_FORTRAN_PROCEDURES "${_made}")
endforeach()
set(ONEHOP_FORTRAN_INTERFACES "")
foreach(function IN LISTS _operations)
  string(REGEX REPLACE "function (.*)_@name@" "\\1" _name "${function}")
  string(APPEND ONEHOP_FORTRAN_INTERFACES "  interface onehop_${_name}\n    module procedure ${_name}_int32, ${_name}_int64, &\n"
         "      ${_name}_real32, ${_name}_real64, ${_name}_complex32, ${_name}_complex64\n  end interface\n")
endforeach()
configure_file(c/onehop.f90.in onehop.f90 @ONLY)
