# What a user can switch. Everything optional is off when Holdfast is part of another project.

option(HOLDFAST_BUILD_CLI "Build the holdfast command line" ${PROJECT_IS_TOP_LEVEL})
option(HOLDFAST_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(HOLDFAST_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(HOLDFAST_BUILD_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
option(HOLDFAST_INSTALL "Generate the install target" ${PROJECT_IS_TOP_LEVEL})
option(HOLDFAST_WERROR "Treat warnings as errors" OFF)
option(HOLDFAST_HARDENING "Compile and link with the protections that distributions use" ${PROJECT_IS_TOP_LEVEL})
set(HOLDFAST_SANITIZE "" CACHE STRING "Sanitizers for every target, as clang spells them: address,undefined or thread")
set(HOLDFAST_TEST_LABELS "" CACHE STRING "Build and register only tests with these labels (a list: unit;property); empty: all")

# One switch per backend. AUTO takes what is there and says what it left out; ON fails when it is missing.
set(HOLDFAST_BACKENDS SQLITE POSTGRES MYSQL ODBC REDIS RABBITMQ NATS KAFKA)
foreach(backend IN LISTS HOLDFAST_BACKENDS)
  set(HOLDFAST_WITH_${backend} AUTO CACHE STRING "Build the ${backend} backend: AUTO, ON or OFF")
  set_property(CACHE HOLDFAST_WITH_${backend} PROPERTY STRINGS AUTO ON OFF)
  if(NOT HOLDFAST_WITH_${backend} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "HOLDFAST_WITH_${backend} is '${HOLDFAST_WITH_${backend}}': say AUTO, ON or OFF")
  endif()
endforeach()

if(HOLDFAST_SANITIZE)
  set(HOLDFAST_HARDENING OFF) # the sanitizers bring checks of their own
endif()

if(HOLDFAST_BUILD_FUZZERS AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "The fuzz targets need clang: use the preset fuzz, or -DCMAKE_CXX_COMPILER=clang++-19")
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# A compiler cache, when there is one and the user has not chosen a launcher. The settings travel with the launcher, so that a plain
# `ninja` behaves like the scripts. pch_defines, time_macros: without them a file that uses a precompiled header is never cached.
# NOHASHDIR, BASEDIR: the consumer tests build the same sources in other directories, and another clone has them at another path; both
# should find the objects of the first build.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  find_program(HOLDFAST_CCACHE ccache)
  mark_as_advanced(HOLDFAST_CCACHE)
  if(HOLDFAST_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1 "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${HOLDFAST_CCACHE}")
  endif()
endif()

include(HoldfastTidy)
