# Target `tidy`: clang-tidy over src/, with the checks of .clang-tidy. Needs the preset `tidy`: clang-tidy reads the compile commands,
# and those of g++ name options that it does not know.

if(PROJECT_IS_TOP_LEVEL AND CMAKE_EXPORT_COMPILE_COMMANDS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_program(HOLDFAST_CLANG_TIDY clang-tidy-19)
  mark_as_advanced(HOLDFAST_CLANG_TIDY)
  if(HOLDFAST_CLANG_TIDY)
    add_custom_target(tidy
      COMMAND /usr/bin/python3 ${PROJECT_SOURCE_DIR}/scripts/tidy ${PROJECT_BINARY_DIR}
      COMMENT "clang-tidy over src/"
      USES_TERMINAL VERBATIM)
  endif()
endif()
