# SPDX-License-Identifier: GPL-2.0-only OR MIT
# find_package(krcore): krcore::krcore, krcore::queue and krcore::queue_static; krcore.7 says what
# each has. To link libkrcore statically, ask pkg-config for its many libraries.
include("${CMAKE_CURRENT_LIST_DIR}/krcoreTargets.cmake")
