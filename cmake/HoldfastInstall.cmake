# Install: headers, libraries, the command line, and what others need to find them: holdfastConfig.cmake, and holdfast.pc with one
# holdfast-<component>.pc for each capability.
# One export file per capability, so that find_package(holdfast COMPONENTS key) looks only for what key needs.

include(CMakePackageConfigHelpers)

set(_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
get_property(_targets GLOBAL PROPERTY HOLDFAST_LIBRARIES)

set(HOLDFAST_COMPONENTS "")     # in link order: what a component needs comes before it
set(HOLDFAST_COMPONENT_CODE "") # for holdfastConfig.cmake

# The linker flags of a third-party library. Not "Requires.private: simdjson": that would add the compiler flags of a library that no
# header of ours includes.
function(_holdfast_linker_flags module out)
  if(NOT module OR module MATCHES "^-l")
    set(${out} "${module}" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --libs ${module} OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE " " ";" flags "${flags}")
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()

foreach(target IN LISTS _targets)
  get_target_property(component ${target} EXPORT_NAME)
  get_target_property(type ${target} TYPE)
  install(TARGETS ${target} EXPORT holdfast-${component}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(EXPORT holdfast-${component} NAMESPACE holdfast:: DESTINATION ${_cmake_dir} FILE holdfast-${component}.cmake COMPONENT development)

  # What it links: our own libraries, and the third-party ones that a static archive needs again.
  set(needs "")
  set(finds "")
  set(third_party "")
  set(links "")
  foreach(property IN ITEMS LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    get_target_property(found ${target} ${property})
    if(found)
      list(APPEND links ${found})
    endif()
  endforeach()
  list(TRANSFORM links REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1")
  list(REMOVE_DUPLICATES links)
  foreach(link IN LISTS links)
    if(link MATCHES "^\\$<BUILD_INTERFACE:")
      continue()
    endif()
    string(REGEX REPLACE "^holdfast(_|::)" "" ours "${link}")
    if(NOT ours STREQUAL link)
      list(APPEND needs ${ours})
      continue()
    endif()
    get_property(known GLOBAL PROPERTY HOLDFAST_FIND_OF_${link} SET)
    if(NOT known)
      message(FATAL_ERROR "${target} links ${link}, which consumers could not find: add holdfast_dependency(${link} ...) to HoldfastDependencies.cmake")
    endif()
    if(type STREQUAL "STATIC_LIBRARY")
      get_property(find GLOBAL PROPERTY HOLDFAST_FIND_OF_${link})
      list(APPEND finds "  ${find}")
    endif()
    get_property(pkgconfig GLOBAL PROPERTY HOLDFAST_PKGCONFIG_OF_${link})
    _holdfast_linker_flags("${pkgconfig}" flags)
    list(APPEND third_party ${flags})
    if(link STREQUAL "Threads::Threads")
      list(APPEND third_party ${CMAKE_THREAD_LIBS_INIT})
    endif()
  endforeach()

  list(APPEND HOLDFAST_COMPONENTS ${component})
  list(JOIN needs " " joined_needs)
  list(JOIN finds "\n" finds)
  string(APPEND HOLDFAST_COMPONENT_CODE "set(_holdfast_needs_${component} ${joined_needs})\nmacro(_holdfast_find_for_${component})\n${finds}\nendmacro()\n\n")
  list(REMOVE_DUPLICATES third_party)
  set(_pc_needs_${component} ${needs})
  set(_pc_third_party_${component} ${third_party})
  set(_pc_type_${component} ${type})
  set(_pc_library_${component} ${target})
endforeach()
set(_components ${HOLDFAST_COMPONENTS})
string(REPLACE ";" " " HOLDFAST_COMPONENTS "${HOLDFAST_COMPONENTS}")

configure_package_config_file(${PROJECT_SOURCE_DIR}/packaging/holdfastConfig.cmake.in ${PROJECT_BINARY_DIR}/packaging/holdfastConfig.cmake
  INSTALL_DESTINATION ${_cmake_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Until 1.0 each minor version may break; from 1.0 on this becomes SameMajorVersion.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/packaging/holdfastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/packaging/holdfastConfig.cmake ${PROJECT_BINARY_DIR}/packaging/holdfastConfigVersion.cmake
  DESTINATION ${_cmake_dir} COMPONENT development)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/holdfast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.hpp")

# pkg-config: the prefix is where the file is found, so that an install can be moved.
set(_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(place IN ITEMS INCLUDE LIB)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${place}DIR}")
    set(HOLDFAST_PC_${place}DIR "${CMAKE_INSTALL_${place}DIR}")
  else()
    set(HOLDFAST_PC_${place}DIR "\${prefix}/${CMAKE_INSTALL_${place}DIR}")
  endif()
endforeach()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(HOLDFAST_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  # From lib/pkgconfig, or lib/x86_64-linux-gnu/pkgconfig, up to the prefix.
  file(RELATIVE_PATH _up "/${_pc_dir}" "/")
  string(REGEX REPLACE "/$" "" _up "${_up}")
  set(HOLDFAST_PC_PREFIX "\${pcfiledir}/${_up}")
endif()
foreach(component IN LISTS _components)
  set(HOLDFAST_PC_NAME holdfast-${component})
  set(HOLDFAST_PC_DESCRIPTION "${PROJECT_DESCRIPTION}: ${component}")
  set(HOLDFAST_PC_LIBS "-l${_pc_library_${component}}")
  if(_pc_type_${component} STREQUAL "INTERFACE_LIBRARY")
    set(HOLDFAST_PC_LIBS "")
  endif()
  if(component STREQUAL "holdfast")
    set(HOLDFAST_PC_NAME holdfast)
    set(HOLDFAST_PC_DESCRIPTION "${PROJECT_DESCRIPTION}")
  endif()
  list(TRANSFORM _pc_needs_${component} PREPEND holdfast- OUTPUT_VARIABLE requires)
  list(TRANSFORM requires APPEND " = ${PROJECT_VERSION}")
  list(JOIN requires ", " requires)
  list(JOIN _pc_third_party_${component} " " libs)
  # The headers of a capability use those of the others, so a program links all of them by name.
  set(HOLDFAST_PC_REQUIRES "${requires}")
  # An archive needs what it uses, whether --static is given or not: there is nothing else to link.
  if(BUILD_SHARED_LIBS AND NOT component STREQUAL "holdfast")
    set(HOLDFAST_PC_LIBS_PRIVATE "${libs}")
  else()
    string(APPEND HOLDFAST_PC_LIBS " ${libs}")
    set(HOLDFAST_PC_LIBS_PRIVATE "")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/packaging/holdfast.pc.in ${PROJECT_BINARY_DIR}/packaging/${HOLDFAST_PC_NAME}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/packaging/${HOLDFAST_PC_NAME}.pc DESTINATION ${_pc_dir} COMPONENT development)
endforeach()

if(TARGET holdfast_cli)
  file(RELATIVE_PATH _to_libraries "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(holdfast_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${_to_libraries}" BUILD_WITH_INSTALL_RPATH ON)
  if(BUILD_SHARED_LIBS)
    set_target_properties(holdfast_cli PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_BINDIR})
  endif()
  install(TARGETS holdfast_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  if(NOT CMAKE_CROSSCOMPILING)
    # The program knows its own commands: it writes its completion and its manual pages.
    set(_completion ${PROJECT_BINARY_DIR}/packaging/completion)
    set(_man ${PROJECT_BINARY_DIR}/packaging/man)
    add_custom_command(OUTPUT ${_completion}.bash ${_completion}.zsh ${_man}/holdfast.1
      COMMAND holdfast_cli completion bash > ${_completion}.bash
      COMMAND holdfast_cli completion zsh > ${_completion}.zsh
      COMMAND ${CMAKE_COMMAND} -E rm -rf ${_man}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${_man}
      COMMAND holdfast_cli man ${_man} > ${_man}.list
      DEPENDS holdfast_cli VERBATIM)
    add_custom_target(holdfast_documents ALL DEPENDS ${_completion}.bash)
    install(FILES ${_completion}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME holdfast COMPONENT runtime)
    install(FILES ${_completion}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _holdfast COMPONENT runtime)
    install(DIRECTORY ${_man}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime FILES_MATCHING PATTERN "*.1")
  endif()
  foreach(_unit holdfast-serve holdfast-gateway@ holdfast-outbox-work@ holdfast-store-clean@)
    configure_file(${PROJECT_SOURCE_DIR}/packaging/systemd/${_unit}.service.in ${PROJECT_BINARY_DIR}/packaging/${_unit}.service @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/packaging/${_unit}.service DESTINATION lib/systemd/system COMPONENT runtime)
  endforeach()
endif()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
# For the machines of Prometheus and Grafana.
install(FILES ${PROJECT_SOURCE_DIR}/packaging/prometheus/holdfast.rules.yml ${PROJECT_SOURCE_DIR}/packaging/prometheus/holdfast.scrape.yml
              ${PROJECT_SOURCE_DIR}/packaging/grafana/holdfast.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/holdfast COMPONENT runtime)
