# oneDNN (libdnnl): headers, library, version, target DNNL::dnnl.
#
# Debian's dnnl-config.cmake stops the configuration when OpenCL's development
# files are missing, which a CPU build does not need; so it is found here.

find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h HINTS ${OneDNN_ROOT}
          PATH_SUFFIXES include)
find_library(OneDNN_LIBRARY dnnl HINTS ${OneDNN_ROOT})
if(OneDNN_INCLUDE_DIR)
    file(STRINGS ${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines
         REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
    string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
    list(JOIN numbers "." OneDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN
    REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR
    VERSION_VAR OneDNN_VERSION)
mark_as_advanced(OneDNN_LIBRARY OneDNN_INCLUDE_DIR)

if(OneDNN_FOUND AND NOT TARGET DNNL::dnnl)
    add_library(DNNL::dnnl UNKNOWN IMPORTED)
    set_target_properties(DNNL::dnnl PROPERTIES
        IMPORTED_LOCATION ${OneDNN_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_INCLUDE_DIR})
endif()
