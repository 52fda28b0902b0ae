# What `cmake --install` installs, as components that can be had alone
# (cmake --install build --component comm):
#
#   comm      libtacit_comm.so, .a, its headers, plug-ins, the package files
#   comm_mpi  libtacit_comm_mpi: communicators from MPI_Comm
#   localsgd  libtacit_localsgd
#   ddp       libtacit.so: engine, amp, models, data, ddp in one library
#   programs  ddp_train, comm_bench, ...
#   doc       documentation and examples
#
# A library contains what it uses of ours or links another of these, so no
# context, communicator or table exists twice in a process. All paths inside
# are relative: the folder may be moved.

function(tac_headers component)
    foreach(folder IN LISTS ARGN)
        install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/include/tacit
                DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
                COMPONENT ${component} FILES_MATCHING PATTERN "*.h")
    endforeach()
endfunction()

function(tac_pkgconfig component file description requires libs libs_private)
    set(TAC_PC_NAME ${file})
    set(TAC_PC_DESCRIPTION "${description}")
    set(TAC_PC_REQUIRES "${requires}")
    set(TAC_PC_LIBS "${libs}")
    set(TAC_PC_LIBS_PRIVATE "${libs_private}")
    configure_file(${PROJECT_SOURCE_DIR}/cmake/tacit.pc.in
                   ${PROJECT_BINARY_DIR}/package/${file}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/package/${file}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
            COMPONENT ${component})
endfunction()

# Its targets, its part of the package configuration.
function(tac_install_library name)
    set(targets tacit_${name}_shared)
    if(TARGET tacit_${name}_static)
        list(APPEND targets tacit_${name}_static)
    endif()
    install(TARGETS ${targets} EXPORT tacit-${name}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name})
    install(EXPORT tacit-${name} NAMESPACE tacit:: COMPONENT ${name}
            FILE tacit-${name}.cmake DESTINATION ${TAC_CMAKE_DIR})
    set_property(GLOBAL APPEND PROPERTY TAC_INSTALLED ${name})
endfunction()

function(tac_install_comm)
    tac_add_package_library(comm STATIC OBJECTS base comm
                            LIBS Threads::Threads m ${CMAKE_DL_LIBS})
    tac_install_library(comm)
    tac_headers(comm base)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/comm/include/tacit
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT comm
            FILES_MATCHING PATTERN "*.h" PATTERN comm_mpi.h EXCLUDE)
    tac_pkgconfig(comm tacit-comm "Communication for training in parallel"
                  "" "-ltacit_comm" "-lpthread -lm -ldl")
    if(TARGET tacit_ucx)
        install(TARGETS tacit_ucx LIBRARY
                DESTINATION ${TAC_PLUGIN_DIR} COMPONENT comm)
    endif()
endfunction()

function(tac_install_comm_mpi)
    tac_add_package_library(comm_mpi STATIC OBJECTS comm_mpi USES comm
                            LIBS Threads::Threads PUBLIC_LIBS MPI::MPI_C)
    tac_install_library(comm_mpi)
    install(FILES ${PROJECT_SOURCE_DIR}/comm/include/tacit/comm_mpi.h
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tacit COMPONENT comm_mpi)
    # MPI's own flags: not every MPI has a .pc file.
    list(TRANSFORM MPI_C_INCLUDE_DIRS PREPEND "-I" OUTPUT_VARIABLE cflags)
    list(JOIN cflags " " TAC_PC_CFLAGS)
    string(PREPEND TAC_PC_CFLAGS " ")
    list(JOIN MPI_C_LIBRARIES " " mpi)
    tac_pkgconfig(comm_mpi tacit-comm-mpi "tacit-comm on an MPI communicator"
                  "tacit-comm" "-ltacit_comm_mpi ${mpi}" "")
endfunction()

function(tac_install_localsgd)
    tac_add_package_library(localsgd STATIC OBJECTS localsgd USES comm LIBS m)
    tac_install_library(localsgd)
    tac_headers(localsgd localsgd)
    tac_pkgconfig(localsgd tacit-localsgd
                  "Averaging replicas now and then: local SGD, DiLoCo"
                  "tacit-comm" "-ltacit_localsgd" "-lm")
endfunction()

# All of the training framework; its objects use each other's internals.
function(tac_install_ddp)
    set(uses comm localsgd)
    if(TARGET tacit_comm_mpi)
        list(APPEND uses comm_mpi)
    endif()
    set(libs)
    set(objects engine amp models data agree launch ddp)
    foreach(obj IN LISTS objects)
        get_target_property(own tacit_${obj} TAC_PRIVATE_LIBS)
        if(own)
            list(APPEND libs ${own})
        endif()
    endforeach()
    list(REMOVE_DUPLICATES libs)
    tac_add_package_library(ddp OUTPUT tacit OBJECTS ${objects}
                            USES ${uses} LIBS ${libs} m)
    tac_install_library(ddp)
    tac_headers(ddp engine amp models data ddp)
    list(TRANSFORM uses REPLACE "(.+)" "tacit-\\1")
    list(JOIN uses " " requires)
    string(REPLACE "_" "-" requires "${requires}")
    tac_pkgconfig(ddp tacit "Training with as little communication as possible"
                  "${requires}" "-ltacit" "")
endfunction()

function(tac_install_programs)
    foreach(program ddp_train tacit_info comm_bench engine_bench localsgd_sim
                    localsgd_sweep localsgd_experiments)
        if(TARGET ${program})
            install(TARGETS ${program} RUNTIME
                    DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
            set_target_properties(${program} PROPERTIES
                                  INSTALL_RPATH_USE_LINK_PATH ON)
        endif()
    endforeach()
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/tacit_run
            DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
endfunction()

function(tac_install_package_files)
    include(CMakePackageConfigHelpers)
    get_property(TAC_INSTALLED GLOBAL PROPERTY TAC_INSTALLED)
    configure_package_config_file(
        ${PROJECT_SOURCE_DIR}/cmake/tacitConfig.cmake.in
        ${PROJECT_BINARY_DIR}/package/tacitConfig.cmake
        INSTALL_DESTINATION ${TAC_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
    write_basic_package_version_file(
        ${PROJECT_BINARY_DIR}/package/tacitConfigVersion.cmake
        COMPATIBILITY SameMinorVersion)
    install(FILES ${PROJECT_BINARY_DIR}/package/tacitConfig.cmake
                  ${PROJECT_BINARY_DIR}/package/tacitConfigVersion.cmake
            DESTINATION ${TAC_CMAKE_DIR} COMPONENT comm)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
            DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT comm)
    install(FILES ${PROJECT_SOURCE_DIR}/README.md
            DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs
                      ${PROJECT_SOURCE_DIR}/examples
            DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc
            PATTERN CMakeLists.txt EXCLUDE)
endfunction()

function(tac_install)
    set(TAC_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tacit)
    set(prefix ${CMAKE_INSTALL_PREFIX})
    set(lib ${CMAKE_INSTALL_FULL_LIBDIR})
    file(RELATIVE_PATH TAC_PREFIX_FROM_PC ${lib}/pkgconfig ${prefix})
    string(REGEX REPLACE "/$" "" TAC_PREFIX_FROM_PC "${TAC_PREFIX_FROM_PC}")
    file(RELATIVE_PATH TAC_LIB_FROM_PREFIX ${prefix} ${lib})
    file(RELATIVE_PATH TAC_INCLUDE_FROM_PREFIX ${prefix}
         ${CMAKE_INSTALL_FULL_INCLUDEDIR})
    tac_install_comm()
    if(TARGET tacit_comm_mpi)
        tac_install_comm_mpi()
    endif()
    if(TARGET tacit_localsgd)
        tac_install_localsgd()
    endif()
    if(TARGET tacit_ddp)
        tac_install_ddp()
    endif()
    tac_install_programs()
    tac_install_package_files()
endfunction()
