# An overlay port of the sources that it lies in: vcpkg install holdfast --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

set(backends "")
foreach(backend IN ITEMS sqlite postgres mysql odbc rabbitmq nats kafka)
  string(TOUPPER ${backend} name)
  if(backend IN_LIST FEATURES)
    list(APPEND backends -DHOLDFAST_WITH_${name}=ON)
  else()
    list(APPEND backends -DHOLDFAST_WITH_${name}=OFF)
  endif()
endforeach()

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${backends} -DHOLDFAST_BUILD_CLI=OFF -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/holdfast)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
