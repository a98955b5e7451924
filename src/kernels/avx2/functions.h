#pragma once

#include "kernels/args.h"

namespace stoker::kernels::avx2 {

#include "kernels/vec/functions.inc.h"

}  // namespace stoker::kernels::avx2
