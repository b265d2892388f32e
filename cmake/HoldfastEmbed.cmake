# holdfast_embed_lua(<target> <namespace> <file.lua>...)
#
# Embeds Lua scripts into a target. The files are relative to the current source directory, which is a folder of src/. In src/sequence
#
#   holdfast_embed_lua(holdfast_sequence detail::sequence::redis redis/claim.lua)
#
# writes the header "sequence/redis/claim_lua.hpp" into the build tree, for this target only:
#
#   namespace HOLDFAST_NAMESPACE::detail::sequence::redis { inline constexpr std::string_view claim_lua = ...; }
#
# CMake writes the headers when it runs, and runs again when a script changes. Where luac5.1 (the Lua version of Redis) is installed,
# a script that it cannot parse is an error.

find_program(HOLDFAST_LUAC luac5.1)
mark_as_advanced(HOLDFAST_LUAC)

function(holdfast_embed_lua target namespace)
  set(include_directory ${PROJECT_BINARY_DIR}/embedded)
  foreach(file IN LISTS ARGN)
    set(script ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
    if(HOLDFAST_LUAC)
      execute_process(COMMAND ${HOLDFAST_LUAC} -p ${script} RESULT_VARIABLE status ERROR_VARIABLE message)
      if(NOT status EQUAL 0)
        message(FATAL_ERROR "${message}")
      endif()
    endif()
    file(RELATIVE_PATH source ${PROJECT_SOURCE_DIR} ${script})
    cmake_path(GET script STEM stem)
    cmake_path(GET script PARENT_PATH folder)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${folder})
    file(READ ${script} text)
    _holdfast_string_literals("${text}" ${source} literals)
    # Leaves the header alone, and its users compiled, when nothing changed.
    file(CONFIGURE OUTPUT ${include_directory}/${folder}/${stem}_lua.hpp CONTENT
"// Generated from @source@; change that file.
#pragma once

#include <holdfast/version.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::@namespace@ {
inline constexpr std::string_view @stem@_lua =@literals@;
}
" @ONLY)
  endforeach()
  target_include_directories(${target} PRIVATE ${include_directory})
endfunction()

# Text as adjacent raw string literals, each of at most 8000 bytes in whole lines: compilers limit the length of one literal (16 KiB) and
# of all of them together (64 KiB).
function(_holdfast_string_literals text source result)
  string(LENGTH "${text}" remaining)
  string(FIND "${text}" ")lua\"" delimiter)
  if(remaining GREATER 60000 OR NOT delimiter EQUAL -1 OR NOT text MATCHES "\n$")
    message(FATAL_ERROR "${source} cannot be embedded: it is longer than 60000 bytes, contains )lua\", or does not end with a line break")
  endif()
  set(literals "")
  while(remaining GREATER 0)
    string(SUBSTRING "${text}" 0 8000 piece)
    string(FIND "${piece}" "\n" line_end REVERSE)
    math(EXPR length "${line_end} + 1")
    string(SUBSTRING "${text}" 0 ${length} piece)
    string(SUBSTRING "${text}" ${length} -1 text)
    string(APPEND literals "\nR\"lua(${piece})lua\"")
    math(EXPR remaining "${remaining} - ${length}")
  endwhile()
  set(${result} "${literals}" PARENT_SCOPE)
endfunction()

# holdfast_embed_assets(<target> <folder>)
#
# Embeds the files of a folder, the console, into a target, as the table that serve/console/assets.hpp declares. The build writes the table
# when a file changes; a new file is seen when CMake runs, which it does by itself. gzip is a part of every Debian system.

find_program(HOLDFAST_GZIP gzip REQUIRED)
mark_as_advanced(HOLDFAST_GZIP)

function(holdfast_embed_assets target folder)
  file(GLOB assets CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/console_assets.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_assets.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D "ASSETS=${assets}" -D OUTPUT=${output} -D GZIP=${HOLDFAST_GZIP} -P ${script}
    DEPENDS ${assets} ${script} VERBATIM)
  target_sources(${target} PRIVATE ${output})
  # A change of a file compiles this source alone.
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
