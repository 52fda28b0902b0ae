# One function declares every library, so that all have the same warnings,
# visibility, include rules and names.
#
#   tac_add_library(comm SOURCES comm.c ... DEPENDS base [PRIVATE_LIBS ...]
#                   [SHARED_TOO])
#
# makes tacit_comm (static, tacit::comm) from <folder>/SOURCES. Public headers
# are in <folder>/include; only the targets named in DEPENDS lend their include
# directories. SHARED_TOO adds lib<name>.so, which contains the objects of the
# library and of all that it depends on, so that it needs nothing of ours.

add_library(tacit_flags INTERFACE)
target_compile_options(tacit_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Wconversion
    -Wno-sign-conversion -fno-math-errno -ffp-contract=off
    $<$<BOOL:${TACIT_WERROR}>:-Werror>)
target_compile_definitions(tacit_flags INTERFACE _GNU_SOURCE)

function(tac_add_library name)
    cmake_parse_arguments(A "SHARED_TOO" "" "SOURCES;DEPENDS;PRIVATE_LIBS"
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

    if(A_SHARED_TOO)
        set(objects $<TARGET_OBJECTS:${obj}>)
        foreach(dep IN LISTS A_DEPENDS)
            list(APPEND objects $<TARGET_OBJECTS:tacit_${dep}_obj>)
        endforeach()
        add_library(tacit_${name}_shared SHARED ${objects})
        target_include_directories(tacit_${name}_shared
            PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
        foreach(dep IN LISTS A_DEPENDS)
            target_link_libraries(tacit_${name}_shared
                                  PUBLIC tacit_${dep}_headers)
        endforeach()
        target_link_libraries(tacit_${name}_shared
                              PRIVATE Threads::Threads m ${A_PRIVATE_LIBS})
        set_target_properties(tacit_${name}_shared PROPERTIES
            OUTPUT_NAME tacit_${name} VERSION ${PROJECT_VERSION}
            SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C)
    endif()
endfunction()

# The sources of one instruction set get that set's flags and no other's.
function(tac_isa_flags)
    cmake_parse_arguments(A "" "" "SOURCES;FLAGS" ${ARGN})
    set_source_files_properties(${A_SOURCES} PROPERTIES
                                COMPILE_OPTIONS "${A_FLAGS}")
endfunction()
