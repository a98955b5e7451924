// Kernels for instructions that few machines have, built once more with an emulation of these instructions.
#pragma once

#include <vector>

#include "kernels/table.h"

namespace stoker::testing {

/// Tables of AVX-VNNI (AVX-512 has the same instructions in another encoding) and of AMX (tiles in plain C++). Empty on
/// machines without AVX-512 VNNI, and in builds for sanitizers.
std::vector<const kernels::Table*> emulated_tables();

}  // namespace stoker::testing
