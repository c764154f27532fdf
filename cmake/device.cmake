# Kernels compiled for cards (`make device`) are embedded into the library (src/device/images.cc) if they are there.

file(GLOB _images CONFIGURE_DEPENDS build/device/*.lz)
set(_lines "")
foreach(file IN LISTS _images)
  if(file MATCHES "/([a-z0-9_]+)\\.(ptx|cubin|hsaco)\\.lz$")
    string(APPEND _lines
           "ONEHOP_IMAGE(onehop_image_${CMAKE_MATCH_1}_${CMAKE_MATCH_2}, \"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_2}\", \"${file}\")\n")
  endif()
endforeach()
if(_lines)
  file(CONFIGURE OUTPUT images.inc CONTENT "${_lines}" @ONLY)
  set_source_files_properties(src/device/images.cc PROPERTIES OBJECT_DEPENDS "${_images};${CMAKE_CURRENT_BINARY_DIR}/images.inc"
    COMPILE_DEFINITIONS "ONEHOP_IMAGES=\"${CMAKE_CURRENT_BINARY_DIR}/images.inc\"")
endif()
