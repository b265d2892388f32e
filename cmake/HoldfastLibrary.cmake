# holdfast_library(<capability> SOURCES ... [PUBLIC ...] [PRIVATE ...])
# One library per capability: target holdfast_<capability>, alias holdfast::<capability>.
#
# holdfast_settings: an interface target with the settings of everything we compile ourselves (libraries, command line, tests), never of
# what consumes us. Link it PRIVATE; in an exported target as $<BUILD_INTERFACE:holdfast_settings>.

include(GNUInstallDirs)

add_library(holdfast_settings INTERFACE)
target_compile_options(holdfast_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wcast-align
  # gcc 12 at -O3 sees overlapping, overlong and uninitialised copies inside std::string that do not exist.
  # The sanitizers and clang look for the real ones.
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds;-Wno-maybe-uninitialized>"
  $<$<BOOL:${HOLDFAST_WERROR}>:-Werror>)
if(CMAKE_UNITY_BUILD)
  # Several files become one, which is no longer the "main file" that g++ expects file-local types in, and a name of one file may hide a
  # file-local name of another. Within a file both are errors: the presets dev and tidy compile each file alone.
  target_compile_options(holdfast_settings INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

# What users run, our libraries and programs, is hardened; what only we run is not.
add_library(holdfast_hardening INTERFACE)
if(HOLDFAST_HARDENING)
  # FORTIFY_SOURCE needs optimised code.
  target_compile_options(holdfast_hardening INTERFACE -fstack-protector-strong
    "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>"
    $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection>)
  target_link_options(holdfast_hardening INTERFACE LINKER:-z,relro,-z,now)
endif()

if(HOLDFAST_SANITIZE)
  target_compile_options(holdfast_settings INTERFACE
    -fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(holdfast_settings INTERFACE -fsanitize=${HOLDFAST_SANITIZE})
endif()
if(HOLDFAST_BUILD_FUZZERS)
  # Coverage for the fuzzers in every library, so that tests and fuzz targets share them instead of building them twice. It is compiled in
  # by holdfast_library, and by the fuzz targets.
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
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:holdfast_settings> $<BUILD_INTERFACE:holdfast_hardening>)
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    # Static and shared objects are compiled with the same command, so the compiler cache serves both.
    DEFINE_SYMBOL ""
    # Shared libraries find each other wherever the prefix is moved to. The build tree has the same layout and the same path: one that is to be
    # replaced by the install step ends with an empty element, and that means the current directory.
    INSTALL_RPATH "$ORIGIN"
    BUILD_WITH_INSTALL_RPATH ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(BUILD_SHARED_LIBS AND NOT HOLDFAST_SANITIZE)
    # A library that uses what another one does not export would fail only in the program that links it.
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
  if(HOLDFAST_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_LIBRARIES ${target})
endfunction()

# holdfast_internal_library(<room> SOURCES ... [PUBLIC ...] [PRIVATE ...])
# A static library for the command line, the tests and the fuzz targets. It is not installed, and not a part of holdfast::holdfast. Other
# builds do not compile it.
function(holdfast_internal_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "holdfast_internal_library(${name}): needs SOURCES, and knows only SOURCES, PUBLIC and PRIVATE")
  endif()
  set(target holdfast_${name})
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${arg_SOURCES})
  add_library(holdfast::${name} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} holdfast_settings holdfast_hardening)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  if(HOLDFAST_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
