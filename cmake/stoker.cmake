# The three kinds of target of this project: modules, kernels of one instruction set, tests.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Without it both compilers fuse a * b + c where the target has FMA, and the bits would depend on the machine.
add_compile_options(-ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(STOKER_WERROR)
  add_compile_options(-Werror)
endif()
if(STOKER_SANITIZE)
  add_compile_options(-fsanitize=${STOKER_SANITIZE} -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 sees uninitialized members of variants that are not there once sanitizers are on. With it, two checks of every
    # access double the time of a build: null pointers end a program anyway, alignment is what the fuzz builds (clang) check.
    add_compile_options(-Wno-maybe-uninitialized -fno-sanitize=null,alignment)
  endif()
  add_link_options(-fsanitize=${STOKER_SANITIZE})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT STOKER_SANITIZE)
  add_compile_options(-Wthread-safety)
endif()

# What takes longer to optimize than it ever runs: the command line, tests.
function(stoker_quick_to_build target)
  if(STOKER_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# What takes longer to read its headers than for anything else: several files of a target are compiled at once. tools/lint reads
# them that way too.
function(stoker_together target n_files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${STOKER_UNITY} UNITY_BUILD_BATCH_SIZE ${n_files})
endfunction()

# stoker_module(quant SOURCES q8_0.cc ... DEPS gguf [ALONE slow.cc]): library stoker::quant of the files in this folder. Those of
# ALONE are compiled one by one.
function(stoker_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;DEPS;LIBS" ${ARGN})
  add_library(stoker_${name} STATIC ${ARG_SOURCES} ${ARG_ALONE})
  stoker_together(stoker_${name} 8)
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(stoker::${name} ALIAS stoker_${name})
  target_include_directories(stoker_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(stoker_${name} PUBLIC stoker::${dep})
  endforeach()
  target_link_libraries(stoker_${name} PUBLIC ${ARG_LIBS})
endfunction()

# stoker_kernels(avx2 SOURCES matmul.cc table.cc FLAGS -mavx2): the folder avx2/, built with FLAGS, part of stoker::kernels.
function(stoker_kernels isa)
  cmake_parse_arguments(ARG "" "" "SOURCES;FLAGS" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${isa}/)
  add_library(stoker_kernels_${isa} OBJECT ${ARG_SOURCES})
  target_include_directories(stoker_kernels_${isa} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(stoker_kernels_${isa} PRIVATE -O3 ${ARG_FLAGS})
  if(STOKER_SANITIZE AND NOT isa STREQUAL scalar)
    # Unrolled intrinsics take minutes a file with every check; addresses are what can go wrong in them. The scalar kernels,
    # which say the same in plain C++, keep all checks.
    target_compile_options(stoker_kernels_${isa} PRIVATE -O1 -fno-sanitize=undefined
      $<$<CXX_COMPILER_ID:GNU>:--param=asan-instrumentation-with-call-threshold=0>)
    if(isa MATCHES "^(avxvnni|amx)$")
      target_compile_options(stoker_kernels_${isa} PRIVATE -fno-sanitize=all)  # CI has no machine that would run them.
    endif()
  endif()
  target_sources(stoker_kernels PRIVATE $<TARGET_OBJECTS:stoker_kernels_${isa}>)
endfunction()

# stoker_label(TEST TARGET unit threads): what `ctest -L unit` runs is what the target unit_tests builds, and so on.
function(stoker_label test target)
  set_tests_properties(${test} PROPERTIES LABELS "${ARGN}")
  foreach(label ${ARGN})
    if(NOT TARGET ${label}_tests)
      add_custom_target(${label}_tests)
    endif()
    add_dependencies(${label}_tests ${target})
  endforeach()
endfunction()

# stoker_test(quant/q4_k_test DEPS quant [SOURCES more.cc] [LABELS unit threads]): tests/quant/q4_k_test.cc as one ctest entry.
# Labels: `unit` (the default) also runs under the address sanitizer, `threads` under the thread sanitizer.
function(stoker_test path)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS;ARGS" ${ARGN})
  string(REPLACE "/" "_" target ${path})
  add_executable(${target} ${PROJECT_SOURCE_DIR}/tests/${path}.cc ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${target} PRIVATE stoker::${dep})
  endforeach()
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main Threads::Threads)
  stoker_quick_to_build(${target})
  add_test(NAME ${path} COMMAND ${target} ${ARG_ARGS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(STOKER_SANITIZE)
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  endif()
  set_tests_properties(${path} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  stoker_label(${path} ${target} ${ARG_LABELS})
endfunction()
