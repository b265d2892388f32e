# Target `tidy`: clang-tidy over src/, with the checks of .clang-tidy. Needs the preset `tidy`: clang-tidy reads the compile commands,
# and those of g++ name options that it does not know.

if(PROJECT_IS_TOP_LEVEL AND CMAKE_EXPORT_COMPILE_COMMANDS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_program(HOLDFAST_RUN_CLANG_TIDY run-clang-tidy-19)
  find_program(HOLDFAST_CLANG_TIDY clang-tidy-19)
  mark_as_advanced(HOLDFAST_RUN_CLANG_TIDY HOLDFAST_CLANG_TIDY)
  if(HOLDFAST_RUN_CLANG_TIDY AND HOLDFAST_CLANG_TIDY)
    # The runner is a script for the system's Python; another python3 that is earlier on the PATH may lack its modules.
    add_custom_target(tidy
      COMMAND /usr/bin/python3 ${HOLDFAST_RUN_CLANG_TIDY} -clang-tidy-binary ${HOLDFAST_CLANG_TIDY}
              -p ${PROJECT_BINARY_DIR} -quiet -warnings-as-errors=* ^${PROJECT_SOURCE_DIR}/src/
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMENT "clang-tidy over src/"
      USES_TERMINAL VERBATIM)
  endif()
endif()
