#pragma once

#include "kernels/args.h"

namespace stoker::kernels::scalar {

#include "kernels/vec/functions.inc.h"

}  // namespace stoker::kernels::scalar
