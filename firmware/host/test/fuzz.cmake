# SPDX-License-Identifier: Apache-2.0
# libFuzzer comes with clang only: cmake -DCMAKE_C_COMPILER=clang-14 -DHIL_FUZZ=ON
set(agent ${components}/agent)
add_executable(fuzz_command test/fuzz_command.c ${agent}/wire.c ${agent}/wire_command.c ${agent}/wire_line.c
    ${agent}/provision.c ${agent}/run.c)
target_include_directories(fuzz_command PRIVATE test ${agent} ${agent}/include idf/include
    ${targets_dir}/${first_chip})
target_compile_options(fuzz_command PRIVATE -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
target_link_options(fuzz_command PRIVATE -fsanitize=fuzzer,address,undefined)

# the decoder of the host's MQTT client: a test as it stands, a fuzzer with HIL_FUZZER
set(mqtt idf/mqtt)
add_executable(fuzz_mqtt test/test_mqtt_packet.c ${mqtt}/packet_decode.c ${mqtt}/packet_encode.c ${mqtt}/outbox.c)
target_compile_definitions(fuzz_mqtt PRIVATE HIL_FUZZER)
target_compile_options(fuzz_mqtt PRIVATE -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
target_link_options(fuzz_mqtt PRIVATE -fsanitize=fuzzer,address,undefined)
