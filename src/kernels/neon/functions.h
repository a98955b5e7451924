#pragma once

#include "kernels/args.h"

namespace stoker::kernels::neon {

#include "kernels/vec/functions.inc.h"

}  // namespace stoker::kernels::neon
