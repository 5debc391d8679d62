# SPDX-License-Identifier: Apache-2.0
# Makes the table of benches from the names of the C files next to this one, for ESP-IDF's build and for the
# host build alike. A file <stem>.c defines `const bench_t bench_<stem>`.
#
# ruler hash: SHA-256 over what measures, that is the sources of the agent, of what benches share (load,
# mqtt_link) and the bench's own. Two series are comparable only if it is the same; a change of the code under
# test leaves it as it is. These are components that a bench measures by where it includes a header of theirs:
set(ruler_components cost http_link iperf rtos trace)
set(ruler_cost cost rtos trace)
set(ruler_rtos rtos trace) # which stamps what the tasks of rtos do

# Hash of a list of files: of their paths below `root` and their contents, in sorted order.
function(bench_hash_files out root)
    set(names "")
    foreach(file IN LISTS ARGN)
        file(SHA256 "${file}" digest)
        file(RELATIVE_PATH name "${root}" "${file}")
        string(REGEX REPLACE "^\\.\\./.*/" "benches/" name "${name}") # of a project's own, wherever that lies
        list(APPEND names "${name}")
        set(digest_${name} "${digest}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    endforeach()
    list(SORT names)
    set(lines "")
    foreach(name IN LISTS names)
        string(APPEND lines "${digest_${name}}  ${name}\n")
    endforeach()
    string(SHA256 hash "${lines}")
    set(${out} ${hash} PARENT_SCOPE)
endfunction()

# bench_ruler(<out> <source>): the components of a bench's own that it measures by.
function(bench_ruler out bench)
    set(found "")
    foreach(component IN LISTS ruler_components)
        file(STRINGS "${bench}" lines REGEX "^#include \"${component}/")
        if(lines AND DEFINED ruler_${component})
            list(APPEND found ${ruler_${component}})
        elseif(lines)
            list(APPEND found ${component})
        endif()
    endforeach()
    list(REMOVE_DUPLICATES found)
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# bench_shared_ruler(<out>): the sources that every bench measures by.
function(bench_shared_ruler out)
    get_filename_component(root "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.." ABSOLUTE)
    set(found "")
    foreach(component agent load mqtt_link)
        file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${root}/${component}/*.c" "${root}/${component}/*.h")
        list(APPEND found ${sources})
    endforeach()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# bench_drivers(<out> <source>...): the headers of drivers that benches include, driver/…, esp_adc/… and esp_sleep.h.
function(bench_drivers out)
    set(headers "")
    foreach(bench IN LISTS ARGN)
        file(STRINGS "${bench}" lines REGEX "^#include \"(driver/|esp_adc/|esp_sleep\\.h)")
        list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
        list(APPEND headers ${lines})
    endforeach()
    set(${out} ${headers} PARENT_SCOPE)
endfunction()

# bench_table(<output.c> <list of sources> [<folder>]): writes the table, returns the sources of all benches. Where
# a folder holds the headers of all drivers that the target has, benches of other drivers are left out.
function(bench_table output sources_out)
    get_filename_component(root "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.." ABSOLUTE)
    file(GLOB benches CONFIGURE_DEPENDS "${root}/benches/*.c")
    if(HIL_BENCHES) # a folder of a project's own
        file(GLOB own_benches CONFIGURE_DEPENDS "${HIL_BENCHES}/*.c")
        list(APPEND benches ${own_benches})
    endif()
    foreach(bench IN LISTS benches)
        bench_drivers(headers "${bench}")
        foreach(header IN LISTS headers)
            set(driver "${header}")
            if(ARGC GREATER 2)
                file(GLOB driver CONFIGURE_DEPENDS "${ARGV2}/${header}") # the next build sees a new header
            endif()
            if(NOT driver)
                get_filename_component(stem "${bench}" NAME_WE)
                message(STATUS "${stem} is left out: this target has no driver ${header}, so it is for chips alone")
                list(REMOVE_ITEM benches "${bench}")
                set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${bench}")
            endif()
        endforeach()
    endforeach()
    if(DEFINED HIL_BENCH_STEMS) # a product has those that it wants
        list(JOIN HIL_BENCH_STEMS "|" stems)
        list(FILTER benches INCLUDE REGEX "/(${stems})[.]c$")
    endif()
    bench_shared_ruler(ruler)
    set(declarations "")
    set(rows "")
    list(LENGTH benches count)
    list(SORT benches COMPARE FILE_BASENAME)
    foreach(bench IN LISTS benches)
        get_filename_component(stem "${bench}" NAME_WE)
        set(own "")
        bench_ruler(measures_by "${bench}")
        foreach(component IN LISTS measures_by)
            file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${root}/${component}/*.c" "${root}/${component}/*.h")
            list(APPEND own ${sources})
        endforeach()
        bench_hash_files(hash "${root}" ${ruler} ${own} "${bench}")
        string(APPEND declarations "extern const bench_t bench_${stem};\n")
        string(APPEND rows "    {&bench_${stem}, \"${hash}\"},\n")
    endforeach()
    if(count EQUAL 0) # an empty initialiser is no C11
        set(rows "    {0},\n")
    endif()
    file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [[
/* Made by bench_table.cmake from components/benches/. */
#include "run.h"

@declarations@
const bench_entry_t bench_table[] = {
@rows@};
const size_t bench_table_length = @count@;
]])
    set(${sources_out} ${benches} PARENT_SCOPE)
endfunction()
