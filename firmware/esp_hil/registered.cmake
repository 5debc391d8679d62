# SPDX-License-Identifier: Apache-2.0
# Benches that a product registers by HIL_BENCH (esp_hil.h): found in the sources of its components, each gets its ruler
# hash, which is of the agent's sources and of the bench's file, as bench_table.cmake has it.
include(${CMAKE_CURRENT_LIST_DIR}/../components/benches/bench_table.cmake)

# product_folders(<out>): the folders of the components that are in the build and not ESP-IDF's.
function(product_folders out)
    if(HIL_HOST) # firmware/host/product/product.cmake
        set(folders ${PRODUCT_COMPONENTS})
    else()
        idf_build_get_property(names BUILD_COMPONENTS)
        idf_build_get_property(idf_path IDF_PATH)
        set(folders "")
        foreach(name IN LISTS names)
            idf_component_get_property(folder ${name} COMPONENT_DIR)
            string(FIND "${folder}/" "${idf_path}/components/" of_idf)
            if(NOT of_idf EQUAL 0)
                list(APPEND folders ${folder})
            endif()
        endforeach()
    endif()
    list(REMOVE_ITEM folders ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
    set(${out} ${folders} PARENT_SCOPE)
endfunction()

# A message that begins with a blank stays on one line, whole where only its first is told.
# registered_benches(<output.c> <stems> <taken>...): writes the hashes, returns the benches' stems; those that are taken
# are the component's own.
function(registered_benches output stems_out)
    get_filename_component(root "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../components" ABSOLUTE)
    bench_shared_ruler(ruler)
    product_folders(folders)
    set(stems "")
    set(text "/* Made by registered.cmake. */\n")
    foreach(folder IN LISTS folders)
        file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.c")
        foreach(source IN LISTS sources)
            file(STRINGS "${source}" lines REGEX "^HIL_BENCH\\([a-z0-9_]+")
            set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
            foreach(line IN LISTS lines)
                string(REGEX REPLACE "^HIL_BENCH\\(([a-z0-9_]+).*" "\\1" stem "${line}")
                if(stem IN_LIST ARGN)
                    message(FATAL_ERROR " ${source} registers the bench ${stem}, which esp_hil has itself: "
                        "give it another name, or leave esp_hil's out (menuconfig, HIL agent).")
                elseif(stem IN_LIST stems)
                    message(FATAL_ERROR " ${source} registers the bench ${stem}, and so does ${file_of_${stem}}: "
                        "give one of them another name.")
                endif()
                list(APPEND stems ${stem})
                set(file_of_${stem} ${source})
                bench_hash_files(hash "${root}" ${ruler} "${source}")
                string(APPEND text "extern const char hil_bench_ruler_${stem}[];\n"
                    "const char hil_bench_ruler_${stem}[] = \"${hash}\";\n")
            endforeach()
        endforeach()
    endforeach()
    string(APPEND text "typedef int hil_registered_t; /* there may be none */\n")
    file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT "${text}")
    set(${stems_out} ${stems} PARENT_SCOPE)
endfunction()
