# Checks of the repository's own rules, for tests/CMakeLists.txt.

# Every public header compiles alone: one generated source per header, which includes it twice and nothing else. A header that forgets an
# include, or its guard, fails the test consumer.headers_alone, whichever compiler this build has.
function(holdfast_check_headers)
  if(HOLDFAST_SANITIZE)
    return() # asked once, with g++: the standard library, whose includes a header may forget, is the same for clang
  endif()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.hpp)
  set(sources "")
  # An adaptor compiles where the library is that it adapts.
  set(adapted "")
  foreach(pair IN ITEMS "SQLITE sqlite3 SQLite::SQLite3" "POSTGRES libpq PostgreSQL::PostgreSQL" "MYSQL mariadb PkgConfig::mariadb")
    separate_arguments(pair)
    list(GET pair 0 backend)
    list(GET pair 1 adaptor)
    list(GET pair 2 library)
    if(HOLDFAST_HAS_${backend})
      list(APPEND adapted ${library})
    else()
      list(REMOVE_ITEM headers holdfast/join/${adaptor}.hpp)
    endif()
  endforeach()
  foreach(header IN LISTS headers)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <@header@>\n#include <@header@>\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  add_library(holdfast_headers_alone OBJECT EXCLUDE_FROM_ALL ${sources})
  target_compile_options(holdfast_headers_alone PRIVATE -O0 -g0)
  target_link_libraries(holdfast_headers_alone PRIVATE holdfast::holdfast holdfast_settings ${adapted})
  set_target_properties(holdfast_headers_alone PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD OFF)
endfunction()

# Rules that a script can read off the files.
function(holdfast_check_rules)
  add_test(NAME house.public_headers COMMAND ${CMAKE_COMMAND} -D ROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/check_public_headers.cmake)
  add_test(NAME house.changelog COMMAND ${CMAKE_COMMAND} -D ROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/check_changelog.cmake)
  set_tests_properties(house.public_headers house.changelog PROPERTIES LABELS house)
endfunction()
