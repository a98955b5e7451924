#include "kernels/neon/functions.h"
#include "kernels/neon/simd.h"

namespace stoker::kernels::neon {
namespace {

// Each builds on those before it.
// clang-format off
#include "kernels/vec/math.inc.h"
#include "kernels/vec/vector.inc.h"
#include "kernels/vec/recur.inc.h"
// clang-format on

}  // namespace

#include "kernels/vec/recur_functions.inc.h"

}  // namespace stoker::kernels::neon
