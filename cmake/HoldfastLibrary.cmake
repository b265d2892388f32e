# holdfast_library(<capability> SOURCES ... [PUBLIC ...] [PRIVATE ...])
# One library per capability: target holdfast_<capability>, alias holdfast::<capability>.

include(GNUInstallDirs)

# Settings of everything we compile ourselves, never of what consumes us.
add_library(holdfast_settings INTERFACE)
target_compile_options(holdfast_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wcast-align
  $<$<BOOL:${HOLDFAST_WERROR}>:-Werror>)
if(HOLDFAST_SANITIZE)
  target_compile_options(holdfast_settings INTERFACE -fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(holdfast_settings INTERFACE -fsanitize=${HOLDFAST_SANITIZE})
endif()

function(holdfast_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target holdfast_${name})
  add_library(${target} ${arg_SOURCES})
  add_library(holdfast::${name} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:holdfast_settings>)
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_LIBRARIES ${target})
endfunction()
