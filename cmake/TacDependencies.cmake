# What is outside: found or not, and what its absence costs. Each is AUTO (used
# if found), ON (missing is fatal, with the remedy) or OFF.

find_package(PkgConfig REQUIRED)
set_property(GLOBAL PROPERTY TAC_DEPENDENCY_LINES "")

function(tac_dependency_line name found what without)
    if(found)
        set(line "  [x] ${name}: ${what}")
    else()
        set(line "  [ ] ${name}: not found; ${without}")
    endif()
    set_property(GLOBAL APPEND_STRING PROPERTY TAC_DEPENDENCY_LINES
                 "${line}\n")
endfunction()

macro(tac_require_if_on option found package)
    if("${${option}}" STREQUAL "ON" AND NOT ${found})
        message(FATAL_ERROR "${option}=ON, but it was not found: "
            "apt install ${package}, or -D${option}=OFF")
    endif()
endmacro()

macro(tac_require_always found package)
    if(NOT ${found})
        message(FATAL_ERROR "${package} is needed: apt install ${package}, or "
            "scripts/setup for all (comm/ alone needs none of it: "
            "-DTACIT_COMPONENTS=comm)")
    endif()
endmacro()

# MPI: a transport and a bootstrap, in the library tacit::comm_mpi.
set(TAC_HAVE_MPI FALSE)
if(NOT TACIT_WITH_MPI STREQUAL "OFF")
    find_package(MPI 3.1 QUIET COMPONENTS C)
    set(TAC_HAVE_MPI ${MPI_C_FOUND})
    tac_require_if_on(TACIT_WITH_MPI TAC_HAVE_MPI "libopenmpi-dev openmpi-bin")
endif()
tac_dependency_line("MPI" "${TAC_HAVE_MPI}"
    "standard ${MPI_C_VERSION}, ${MPIEXEC_EXECUTABLE}"
    "ranks are threads of one process only (apt install libopenmpi-dev openmpi-bin)")
# Open MPI refuses root, and more ranks than cores, unless told otherwise.
set(TAC_MPI_ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_btl_vader_single_copy_mechanism=none")

# UCX: a transport between hosts, in a plug-in (libtacit_ucx.so).
set(TAC_HAVE_UCX FALSE)
if(NOT TACIT_WITH_UCX STREQUAL "OFF")
    pkg_check_modules(UCX QUIET IMPORTED_TARGET ucx>=1.13)
    set(TAC_HAVE_UCX ${UCX_FOUND})
    tac_require_if_on(TACIT_WITH_UCX TAC_HAVE_UCX "libucx-dev (1.13 or newer)")
endif()
tac_dependency_line("UCX" "${TAC_HAVE_UCX}" "${UCX_VERSION}"
    "the transport 'ucx' is not there (apt install libucx-dev)")

if(TACIT_COMPONENTS STREQUAL "all")
    # oneDNN: matrix products, convolution, BF16.
    set(TAC_HAVE_ONEDNN FALSE)
    if(NOT TACIT_WITH_ONEDNN STREQUAL "OFF")
        find_package(OneDNN 2.6 QUIET)
        set(TAC_HAVE_ONEDNN ${OneDNN_FOUND})
        tac_require_if_on(TACIT_WITH_ONEDNN TAC_HAVE_ONEDNN libdnnl-dev)
    endif()
    tac_dependency_line("oneDNN" "${TAC_HAVE_ONEDNN}" "${OneDNN_VERSION}"
        "reference matrix products and convolutions, many times slower (apt install libdnnl-dev)")

    # CUDA: told, so that nobody wonders. A plug-in will use it.
    find_package(CUDAToolkit QUIET)
    tac_dependency_line("CUDA" "${CUDAToolkit_FOUND}"
        "${CUDAToolkit_VERSION} in ${CUDAToolkit_BIN_DIR}; not used by this version, which computes on the CPU"
        "not needed by this version, which computes on the CPU")

    find_package(ZLIB QUIET)
    tac_require_always(ZLIB_FOUND zlib1g-dev)
    tac_dependency_line("zlib" TRUE "${ZLIB_VERSION_STRING}" "")
    pkg_check_modules(INIH QUIET IMPORTED_TARGET inih)
    tac_require_always(INIH_FOUND libinih-dev)
    tac_dependency_line("libinih" TRUE "${INIH_VERSION}" "")
    pkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson)
    tac_require_always(JANSSON_FOUND libjansson-dev)
    tac_dependency_line("jansson" TRUE "${JANSSON_VERSION}" "")
    pkg_check_modules(XXHASH QUIET IMPORTED_TARGET libxxhash)
    tac_require_always(XXHASH_FOUND libxxhash-dev)
    tac_dependency_line("xxhash" TRUE "${XXHASH_VERSION}" "")
endif()

if(TACIT_TESTS)
    pkg_check_modules(CRITERION QUIET IMPORTED_TARGET criterion)
    tac_dependency_line("Criterion" "${CRITERION_FOUND}" "${CRITERION_VERSION}"
        "unit tests are not built (apt install libcriterion-dev)")
endif()

function(tac_print_dependencies)
    get_property(lines GLOBAL PROPERTY TAC_DEPENDENCY_LINES)
    message(STATUS "tacit ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, "
        "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}; found:\n"
        "${lines}")
endfunction()
