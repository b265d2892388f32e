# What a user can switch. Everything optional is off when Holdfast is part of another project.

option(HOLDFAST_BUILD_CLI "Build the holdfast command line" ${PROJECT_IS_TOP_LEVEL})
option(HOLDFAST_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(HOLDFAST_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(HOLDFAST_BUILD_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
option(HOLDFAST_INSTALL "Generate the install target" ${PROJECT_IS_TOP_LEVEL})
option(HOLDFAST_WERROR "Treat warnings as errors" OFF)
set(HOLDFAST_SANITIZE "" CACHE STRING "Sanitizers for every target, as clang spells them: address,undefined or thread")

# One switch per backend. AUTO takes what is there and says what it left out; ON fails when it is missing.
set(HOLDFAST_BACKENDS SQLITE POSTGRES MYSQL ODBC REDIS)
foreach(backend IN LISTS HOLDFAST_BACKENDS)
  set(HOLDFAST_WITH_${backend} AUTO CACHE STRING "Build the ${backend} backend: AUTO, ON or OFF")
  set_property(CACHE HOLDFAST_WITH_${backend} PROPERTY STRINGS AUTO ON OFF)
  if(NOT HOLDFAST_WITH_${backend} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "HOLDFAST_WITH_${backend} is '${HOLDFAST_WITH_${backend}}': say AUTO, ON or OFF")
  endif()
endforeach()

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
