# SPDX-License-Identifier: Apache-2.0
# Stand-in for ESP-IDF's export.sh under act: puts an idf.py on PATH, which is build_image.py with this project's Python.
# shellcheck shell=sh
hil_root=$(cd "$IDF_PATH/../../.." && pwd)
mkdir -p "$IDF_TOOLS_PATH/bin"
cat >"$IDF_TOOLS_PATH/bin/idf.py" <<END
#!/bin/sh
PYTHONPATH=$hil_root exec $hil_root/.venv/bin/python $IDF_PATH/build_image.py "\$@"
END
chmod +x "$IDF_TOOLS_PATH/bin/idf.py"
export PATH="$IDF_TOOLS_PATH/bin:$PATH"
