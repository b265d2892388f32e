# holdfast_library(<capability> SOURCES ... [PUBLIC ...] [PRIVATE ...])
# One library per capability: target holdfast_<capability>, alias holdfast::<capability>.
#
# holdfast_settings: an interface target with the settings of everything we compile ourselves (libraries, command line, tests), never of
# what consumes us. Link it PRIVATE; in an exported target as $<BUILD_INTERFACE:holdfast_settings>.

include(GNUInstallDirs)

add_library(holdfast_settings INTERFACE)
target_compile_options(holdfast_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wcast-align
  # gcc 12 sees overlapping copies in std::string where there are none.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${HOLDFAST_WERROR}>:-Werror>)
if(HOLDFAST_SANITIZE)
  target_compile_options(holdfast_settings INTERFACE
    -fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(holdfast_settings INTERFACE -fsanitize=${HOLDFAST_SANITIZE})
endif()
if(HOLDFAST_BUILD_FUZZERS)
  # Coverage for the fuzzers in every object, so that tests and fuzz targets share the libraries instead of building them twice.
  target_compile_options(holdfast_settings INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(holdfast_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(holdfast_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "holdfast_library(${name}): needs SOURCES, and knows only SOURCES, PUBLIC and PRIVATE")
  endif()
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
    # Static and shared objects are compiled with the same command, so the compiler cache serves both.
    DEFINE_SYMBOL ""
    # Installed shared libraries find each other wherever the prefix is moved to.
    INSTALL_RPATH "$ORIGIN"
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_LIBRARIES ${target})
endfunction()
