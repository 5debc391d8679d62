# SPDX-License-Identifier: Apache-2.0
# The commands of ESP-IDF's build system that a project's CMakeLists.txt call. read.cmake runs the files to learn what is
# in the project, as `cmake -P`; product.cmake runs them again to build it. Both write lines of JSON into HIL_RECORD, a
# key and a list each. HIL_FOLDER is the project's folder and HIL_CHIP the chip.
set(IDF_TARGET ${HIL_CHIP})
set(IDF_PATH $ENV{IDF_PATH})
set(IDF_VERSION_MAJOR 5)
set(IDF_VERSION_MINOR 5)
set(IDF_VERSION_PATCH 4)
set(ENV{IDF_VERSION} "5.5.4")
set(PROJECT_DIR ${HIL_FOLDER})
set(ESP_PLATFORM 1)
set(HIL_HOST ON) # firmware/esp_hil asks, whose sources are others then
foreach(pair IN ITEMS "IDF_TARGET=${HIL_CHIP}" "TARGET=${HIL_CHIP}" "PROJECT_DIR=${HIL_FOLDER}" "IDF_PATH=$ENV{IDF_PATH}"
        "IDF_VER=v5.5.4" "PYTHON=python3" "BUILD_DIR=${CMAKE_BINARY_DIR}")
    string(REGEX MATCH "^([A-Z_]+)=(.*)$" pair "${pair}")
    set_property(GLOBAL PROPERTY idf_build_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()

set(looked_at_again CONFIGURE_DEPENDS)
if(CMAKE_SCRIPT_MODE_FILE)
    set(looked_at_again "")
endif()

function(record key)
    set(words "")
    foreach(word IN LISTS ARGN)
        string(REPLACE "\\" "\\\\" word "${word}")
        string(REPLACE "\"" "\\\"" word "${word}")
        string(REPLACE "\n" "\\n" word "${word}")
        list(APPEND words "\"${word}\"")
    endforeach()
    list(JOIN words ", " words)
    file(APPEND ${HIL_RECORD} "{\"${key}\": [${words}]}\n")
endfunction()

# left_out(<what>): say once that it has no effect here, and which file asks for it.
function(left_out what)
    get_property(before GLOBAL PROPERTY hil_left_out)
    if(NOT what IN_LIST before)
        set_property(GLOBAL APPEND PROPERTY hil_left_out "${what}")
        record(left_out "${what}" "${CMAKE_CURRENT_LIST_FILE}")
    endif()
endfunction()

macro(include)
    if("${ARGV0}" MATCHES "/tools/cmake/project\\.cmake$")
        set(HIL_OF_IDF ON)
    elseif("${ARGV0}" MATCHES "/tools/(cmakev2|cmake)/idf\\.cmake$")
        message(FATAL_ERROR "${ARGV0} is not read here: a project includes tools/cmake/project.cmake")
    else()
        _include(${ARGV})
    endif()
endmacro()

# The first project() is ESP-IDF's; a library inside may have its own.
macro(project)
    if(HIL_OF_IDF AND NOT HIL_HAS_PROJECT)
        set(HIL_HAS_PROJECT ON)
        set(PROJECT_NAME "${ARGV0}")
        set(CMAKE_PROJECT_NAME "${ARGV0}")
        set_property(GLOBAL PROPERTY idf_build_PROJECT_NAME "${ARGV0}")
        set_property(GLOBAL PROPERTY idf_build_EXECUTABLE "${ARGV0}.elf")
        set_property(GLOBAL PROPERTY idf_build_EXECUTABLE_NAME "${ARGV0}")
        hil_project(${ARGV})
    elseif(NOT CMAKE_SCRIPT_MODE_FILE)
        _project(${ARGV})
    endif()
endmacro()

# Commands for chips alone, and images of file systems: hil build flashes none.
foreach(name IN ITEMS add_prebuilt_library ExternalProject_Add esptool_py_custom_target esptool_py_flash_target esptool_py_flash_target_image
        esptool_py_flash_to_partition fail_at_build_time fail_target fatfs_create_partition_image
        fatfs_create_rawflash_image fatfs_create_spiflash_image idf_build_add_post_elf_dependency
        idf_build_replace_option_from_property idf_clean_coverage_report idf_create_coverage_report
        idf_component_add_link_dependency idf_component_set_property
        littlefs_create_partition_image nvs_create_partition_image partition_table_add_check_bootloader_size_target
        partition_table_add_check_size_target partition_table_get_partition_info spiffs_create_partition_image
        target_bitscrambler_add_src target_linker_script ulp_add_build_binary_targets ulp_add_project
        ulp_apply_default_options ulp_apply_default_sources ulp_embed_binary)
    list(APPEND without_effect "function(${name})\n    left_out(${name})\nendfunction()\n")
endforeach()
list(JOIN without_effect "" without_effect)

# What components add to the project's commands; those without an effect here stay so.
macro(hil_project_includes)
    foreach(folder IN ITEMS ${ARGN})
        if(EXISTS ${folder}/project_include.cmake)
            include(${folder}/project_include.cmake)
        endif()
    endforeach()
    cmake_language(EVAL CODE "${without_effect}")
endmacro()

function(idf_component_optional_requires)
endfunction()

macro(spaces2list variable)
    string(REPLACE " " ";" ${variable} "${${variable}}")
endmacro()

function(idf_build_get_property variable property)
    get_property(value GLOBAL PROPERTY idf_build_${property})
    set(${variable} "${value}" PARENT_SCOPE)
endfunction()

function(idf_build_set_property property value)
    if("APPEND" IN_LIST ARGN)
        set(append APPEND)
    endif()
    set_property(GLOBAL ${append} PROPERTY idf_build_${property} "${value}")
endfunction()

# ESP-IDF's own components are one library here, so that what is set of them has no effect.
function(idf_component_get_property variable component property)
    set(value "")
    if(property STREQUAL "COMPONENT_LIB")
        set(value __product_${component})
        if(NOT TARGET ${value} AND NOT CMAKE_SCRIPT_MODE_FILE)
            set(value __of_idf_${component})
            if(NOT TARGET ${value})
                add_library(${value} OBJECT EXCLUDE_FROM_ALL ${HIL_EMPTY_C})
                left_out("options of ESP-IDF's component ${component}")
            endif()
        endif()
    else()
        get_property(value GLOBAL PROPERTY hil_${component}_${property})
        if(NOT value AND property STREQUAL "COMPONENT_DIR")
            set(value "$ENV{IDF_PATH}/components/${component}")
        endif()
    endif()
    set(${variable} "${value}" PARENT_SCOPE)
endfunction()

macro(register_component)
    idf_component_register(SRCS ${COMPONENT_SRCS} SRC_DIRS ${COMPONENT_SRCDIRS} EXCLUDE_SRCS ${COMPONENT_OBJEXCLUDE}
        INCLUDE_DIRS ${COMPONENT_ADD_INCLUDEDIRS} PRIV_INCLUDE_DIRS ${COMPONENT_PRIV_INCLUDEDIRS}
        REQUIRES ${COMPONENT_REQUIRES} PRIV_REQUIRES ${COMPONENT_PRIV_REQUIRES}
        EMBED_FILES ${COMPONENT_EMBED_FILES} EMBED_TXTFILES ${COMPONENT_EMBED_TXTFILES})
endmacro()

macro(register_config_only_component)
    idf_component_register()
endmacro()

macro(require_idf_targets)
    idf_component_register_targets(${ARGN})
endmacro()

function(idf_component_register_targets)
    if(ARGN AND NOT HIL_CHIP IN_LIST ARGN)
        message(FATAL_ERROR "${COMPONENT_NAME} is for ${ARGN}, not for ${HIL_CHIP}")
    endif()
endfunction()

# Of idf_component_register: register_sources with those of the folders, and a record of all that it says.
macro(hil_registered)
    cmake_parse_arguments(register "WHOLE_ARCHIVE" "KCONFIG;KCONFIG_PROJBUILD"
        "SRCS;SRC_DIRS;EXCLUDE_SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS;LDFRAGMENTS;REQUIRES;PRIV_REQUIRES;REQUIRED_IDF_TARGETS;EMBED_FILES;EMBED_TXTFILES"
        ${ARGN})
    idf_component_register_targets(${register_REQUIRED_IDF_TARGETS})
    set(register_sources "")
    foreach(file IN LISTS register_SRCS)
        get_filename_component(file "${file}" ABSOLUTE BASE_DIR ${COMPONENT_DIR})
        list(APPEND register_sources "${file}")
    endforeach()
    foreach(folder IN LISTS register_SRC_DIRS)
        get_filename_component(folder "${folder}" ABSOLUTE BASE_DIR ${COMPONENT_DIR})
        file(GLOB found ${looked_at_again} ${folder}/*.c ${folder}/*.cpp ${folder}/*.cc ${folder}/*.cxx ${folder}/*.S)
        list(APPEND register_sources ${found})
    endforeach()
    foreach(file IN LISTS register_EXCLUDE_SRCS)
        get_filename_component(file "${file}" ABSOLUTE BASE_DIR ${COMPONENT_DIR})
        list(REMOVE_ITEM register_sources "${file}")
    endforeach()
    record(register "${COMPONENT_DIR}")
    record(sources ${register_sources})
    foreach(what IN ITEMS INCLUDE_DIRS PRIV_INCLUDE_DIRS REQUIRES PRIV_REQUIRES EMBED_FILES EMBED_TXTFILES)
        string(TOLOWER ${what} key)
        record(${key} ${register_${what}})
    endforeach()
endmacro()
