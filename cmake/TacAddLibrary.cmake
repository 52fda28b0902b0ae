# One function declares every library, so that all have the same warnings,
# visibility, include rules and names.
#
#   tac_add_library(comm SOURCES comm.c ... DEPENDS base [PRIVATE_LIBS ...])
#
# makes tacit_comm (static, tacit::comm) from <folder>/SOURCES. Public headers
# are in <folder>/include; only the targets named in DEPENDS lend their include
# directories. Programs and tests of this tree link these.
#
#   tac_add_package_library(comm OBJECTS base comm [USES ...] [LIBS ...])
#
# makes what is installed: libtacit_comm.so and, with STATIC, a libtacit_comm.a
# of the same objects. USES names the package libraries that it links, LIBS
# what is not ours.

add_library(tacit_flags INTERFACE)
target_compile_options(tacit_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Wconversion
    -Wno-sign-conversion -fno-math-errno -ffp-contract=off
    $<$<BOOL:${TACIT_WERROR}>:-Werror>)
target_compile_definitions(tacit_flags INTERFACE _GNU_SOURCE)

function(tac_add_library name)
    cmake_parse_arguments(A "" "" "SOURCES;DEPENDS;PRIVATE_LIBS"
                          ${ARGN})
    set(obj tacit_${name}_obj)
    add_library(${obj} OBJECT ${A_SOURCES})
    target_include_directories(${obj}
        PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
        PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${obj} PRIVATE tacit_flags ${A_PRIVATE_LIBS})
    set_target_properties(${obj} PROPERTIES POSITION_INDEPENDENT_CODE ON)

    add_library(tacit_${name} STATIC $<TARGET_OBJECTS:${obj}>)
    add_library(tacit::${name} ALIAS tacit_${name})
    set_target_properties(tacit_${name} PROPERTIES
                          TAC_PRIVATE_LIBS "${A_PRIVATE_LIBS}")
    target_include_directories(tacit_${name}
        PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
               $<INSTALL_INTERFACE:include>)
    target_link_libraries(tacit_${name} PUBLIC ${A_PRIVATE_LIBS})
    foreach(dep IN LISTS A_DEPENDS)
        target_link_libraries(${obj} PUBLIC tacit_${dep}_headers)
        target_link_libraries(tacit_${name} PUBLIC tacit_${dep})
    endforeach()

    # What a dependent sees while compiling: headers only.
    add_library(tacit_${name}_headers INTERFACE)
    target_include_directories(tacit_${name}_headers INTERFACE
        $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
    foreach(dep IN LISTS A_DEPENDS)
        target_link_libraries(tacit_${name}_headers INTERFACE
                              tacit_${dep}_headers)
    endforeach()
endfunction()

# One version a minor release: before 1.0 each may change the interface, and the
# dynamic linker then says so instead of running the program.
set(TAC_VERSION_MAP ${PROJECT_BINARY_DIR}/tacit.map)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tacit.map.in ${TAC_VERSION_MAP} @ONLY)

function(tac_package_includes target)
    foreach(name IN LISTS ARGN)
        target_link_libraries(${target} PUBLIC
                              $<BUILD_INTERFACE:tacit_${name}_headers>)
    endforeach()
    target_include_directories(${target} INTERFACE
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

function(tac_add_package_library name)
    cmake_parse_arguments(A "STATIC" "OUTPUT;EXPORT"
                          "OBJECTS;USES;LIBS;PUBLIC_LIBS" ${ARGN})
    if(NOT A_OUTPUT)
        set(A_OUTPUT tacit_${name})
    endif()
    set(objects)
    foreach(obj IN LISTS A_OBJECTS)
        list(APPEND objects $<TARGET_OBJECTS:tacit_${obj}_obj>)
    endforeach()

    set(shared tacit_${name}_shared)
    add_library(${shared} SHARED ${objects})
    tac_package_includes(${shared} ${A_OBJECTS})
    list(TRANSFORM A_USES REPLACE "(.+)" "tacit_\\1_shared" OUTPUT_VARIABLE uses)
    target_link_libraries(${shared} PUBLIC ${uses} ${A_PUBLIC_LIBS}
                          PRIVATE ${A_LIBS})
    target_link_options(${shared} PRIVATE
        LINKER:--version-script=${TAC_VERSION_MAP})
    if(NOT TACIT_SANITIZE) # whose functions are the program's
        target_link_options(${shared} PRIVATE LINKER:--no-undefined)
    endif()
    set_target_properties(${shared} PROPERTIES
        OUTPUT_NAME ${A_OUTPUT} VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C
        LINK_DEPENDS ${TAC_VERSION_MAP} EXPORT_NAME ${name})
    if(uses)
        set_target_properties(${shared} PROPERTIES
            INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
    endif()

    if(A_STATIC)
        # Beside the tree's own, which has the folder's objects alone.
        set(static tacit_${name}_static)
        add_library(${static} STATIC ${objects})
        tac_package_includes(${static} ${A_OBJECTS})
        list(TRANSFORM A_USES REPLACE "(.+)" "tacit_\\1_static"
             OUTPUT_VARIABLE uses)
        # By the linker's names, so that a user need find no packages.
        list(TRANSFORM A_LIBS REPLACE "^Threads::Threads$" pthread)
        target_link_libraries(${static} PUBLIC ${uses} ${A_PUBLIC_LIBS}
                              INTERFACE ${A_LIBS})
        set_target_properties(${static} PROPERTIES
            OUTPUT_NAME ${A_OUTPUT} LINKER_LANGUAGE C
            ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/package
            EXPORT_NAME ${name}_static)
    endif()
endfunction()

# The sources of one instruction set get that set's flags and no other's.
function(tac_isa_flags)
    cmake_parse_arguments(A "" "" "SOURCES;FLAGS" ${ARGN})
    set_source_files_properties(${A_SOURCES} PROPERTIES
                                COMPILE_OPTIONS "${A_FLAGS}")
endfunction()
