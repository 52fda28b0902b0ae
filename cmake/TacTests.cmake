# Tests are found by their place and name, so a new file is a new test:
#
#   tests/unit/<lib>_<what>.c     Criterion, pure, no MPI
#   tests/battery/<lib>_<what>.c  own main, threads as ranks, runs under TSan
#   tests/mpi/<lib>_<what>.c      own main, run by mpirun with 4 ranks
#                                 ("// np: 2 4 8" on the first line: others)
#   tests/cli/<what>.sh           shell; $BUILD is the build folder
#   tests/fuzz/<lib>_<what>.c     a reader of files: seeds and their mutations;
#                                 with TACIT_FUZZ driven by libFuzzer (clang)
#
# <lib> is the library that the test links (with all beneath it). Every test
# has a time limit. A test that can't run here exits 77 and says why.

set(TAC_TEST_TIMEOUT 300)

# Begun first, so that none of them is the last one alone on one core.
set(TAC_LONG_TESTS battery.ddp_local_resume battery.ddp_same_answer
    battery.comm_algorithms battery.engine_kernels battery.engine_optim
    battery.engine_optim_runs battery.comm_ucx battery.comm_kills
    cli.comm_bench cli.local cli.local_resume cli.resume cli.engine_bench
    cli.preflight mpi.comm_kills.np4)
# They measure, and would measure the other test as well.
set(TAC_ALONE_TESTS cli.measuring cli.netlab)

# Hundreds of programs are linked; the gold linker takes a third of the time.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=gold TAC_HAS_GOLD)

function(tac_test_libs out lib)
    if(lib STREQUAL "comm" AND TARGET tacit_comm_mpi)
        set(${out} tacit_comm tacit_comm_mpi PARENT_SCOPE)
    elseif(lib STREQUAL "ddp")
        set(${out} tacit_ddp tacit_launch PARENT_SCOPE)
    else()
        set(${out} tacit_${lib} PARENT_SCOPE)
    endif()
endfunction()

function(tac_test_program tier file)
    get_filename_component(name ${file} NAME_WE)
    string(REGEX MATCH "^[a-z]+" lib ${name})
    if(NOT TARGET tacit_${lib})
        return()
    endif()
    set(exe ${tier}_${name})
    add_executable(${exe} ${file})
    tac_test_libs(libs ${lib})
    target_link_libraries(${exe} PRIVATE tacit_flags ${libs} ${ARGN}
                          Threads::Threads m)
    # Tests may look inside the library that they test.
    target_include_directories(${exe} PRIVATE
        ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/${lib})
    # A third of the time that -O3 takes to compile them, which is most of a
    # build's; what they test keeps its own.
    target_compile_options(${exe} PRIVATE -UNDEBUG $<$<CONFIG:Release>:-O1>)
    if(TAC_HAS_GOLD AND NOT tier STREQUAL "fuzz")
        target_link_options(${exe} PRIVATE -fuse-ld=gold)
    endif()
    set_target_properties(${exe} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set(exe ${exe} PARENT_SCOPE)
    set(name ${name} PARENT_SCOPE)
endfunction()

function(tac_set_test_properties test)
    # Parsed, because ENVIRONMENT is a list.
    cmake_parse_arguments(A "" "LABELS;PROCESSORS;TIMEOUT" "ENVIRONMENT" ${ARGN})
    if(NOT A_TIMEOUT)
        set(A_TIMEOUT ${TAC_TEST_TIMEOUT})
    endif()
    set_tests_properties(${test} PROPERTIES TIMEOUT ${A_TIMEOUT}
        SKIP_RETURN_CODE 77 LABELS ${A_LABELS}
        ENVIRONMENT "${A_ENVIRONMENT}")
    if(test IN_LIST TAC_LONG_TESTS)
        set_tests_properties(${test} PROPERTIES COST 100)
    endif()
    if(test IN_LIST TAC_ALONE_TESTS)
        set(A_PROCESSORS 2)
    endif()
    if(A_PROCESSORS)
        set_tests_properties(${test} PROPERTIES PROCESSORS ${A_PROCESSORS})
    endif()
endfunction()

function(tac_add_fuzz_test file)
    set(exe)
    tac_test_program(fuzz ${file})
    if(NOT exe)
        return()
    endif()
    if(TACIT_FUZZ)
        target_compile_definitions(${exe} PRIVATE TAC_FUZZER)
        target_link_options(${exe} PRIVATE -fsanitize=fuzzer)
    else()
        add_test(NAME fuzz.${name} COMMAND ${exe})
        tac_set_test_properties(fuzz.${name} LABELS fuzz TIMEOUT 60)
    endif()
endfunction()

function(tac_add_tests)
    if(CRITERION_FOUND)
        file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*.c)
        foreach(file IN LISTS files)
            set(exe)
            tac_test_program(unit ${file} PkgConfig::CRITERION)
            if(exe)
                add_test(NAME unit.${name} COMMAND ${exe} -j2 --timeout 50)
                tac_set_test_properties(unit.${name} LABELS unit TIMEOUT 60)
            endif()
        endforeach()
    endif()
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/battery/*.c)
    foreach(file IN LISTS files)
        set(exe)
        tac_test_program(battery ${file})
        if(exe)
            add_test(NAME battery.${name} COMMAND ${exe})
            tac_set_test_properties(battery.${name} LABELS battery)
        endif()
    endforeach()
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.c)
    foreach(file IN LISTS files)
        tac_add_fuzz_test(${file})
    endforeach()
    if(TARGET tacit_comm_mpi)
        file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mpi/*.c)
        foreach(file IN LISTS files)
            set(exe)
            tac_test_program(mpi ${file} tacit_comm_mpi)
            if(NOT exe)
                continue()
            endif()
            file(STRINGS ${file} first LIMIT_COUNT 1 REGEX "^// np:")
            string(REGEX MATCHALL "[0-9]+" nps "${first}")
            if(NOT nps)
                set(nps 4)
            endif()
            foreach(np IN LISTS nps)
                set(cores 2)
                if(np LESS 3 OR name STREQUAL "comm_kills") # which mostly waits
                    set(cores 1)
                endif()
                add_test(NAME mpi.${name}.np${np} COMMAND
                    ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${np}
                    ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${exe}>
                    ${MPIEXEC_POSTFLAGS})
                tac_set_test_properties(mpi.${name}.np${np} LABELS mpi
                    ENVIRONMENT "${TAC_MPI_ENVIRONMENT}" PROCESSORS ${cores})
            endforeach()
        endforeach()
    endif()
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cli/*.sh)
    foreach(file IN LISTS files)
        get_filename_component(name ${file} NAME_WE)
        add_test(NAME cli.${name} COMMAND bash ${file})
        tac_set_test_properties(cli.${name} LABELS cli
            ENVIRONMENT "BUILD=${PROJECT_BINARY_DIR};SOURCE=${PROJECT_SOURCE_DIR};${TAC_MPI_ENVIRONMENT}")
    endforeach()
endfunction()
