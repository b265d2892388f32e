cmake_minimum_required(VERSION 3.25)

# No public header includes a third-party header, or one of src/: users get our headers and need nothing else. Allowed: the C++ standard
# library (a name without a dot), the C library where C++ has no name for it (none so far), and holdfast/. The opt-in adaptors are the
# exception: whoever includes one has the library it adapts. So is the line of version.hpp that ends a compilation before C++20; it names no file.
set(adaptors nlohmann.hpp)

file(GLOB_RECURSE headers RELATIVE ${ROOT}/include/holdfast ${ROOT}/include/holdfast/*.hpp)
if(NOT headers)
  message(FATAL_ERROR "no headers found under ${ROOT}/include/holdfast")
endif()
set(bad "")
foreach(header IN LISTS headers)
  if(header IN_LIST adaptors OR header MATCHES "^join/")
    continue()
  endif()
  file(STRINGS ${ROOT}/include/holdfast/${header} includes REGEX "^[ \t]*#[ \t]*(include|import)")
  foreach(line IN LISTS includes)
    if(header STREQUAL "version.hpp" AND line STREQUAL "#include \"holdfast needs -std=c++20\"")
      continue()
    endif()
    if(NOT line MATCHES "#[ \t]*include[ \t]*<(holdfast/[a-z0-9_/]+\\.hpp|[a-z_0-9]+)>")
      string(APPEND bad "\n  include/holdfast/${header}: ${line}")
    endif()
  endforeach()
endforeach()
if(bad)
  message(FATAL_ERROR "public headers may include only <holdfast/...> and the C++ standard library:${bad}")
endif()
