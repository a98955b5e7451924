#pragma once

#include "kernels/args.h"

namespace stoker::kernels::avx512 {

#include "kernels/vec/functions.inc.h"

}  // namespace stoker::kernels::avx512
