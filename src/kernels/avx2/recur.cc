#include "kernels/avx2/functions.h"
#include "kernels/avx2/simd.h"

namespace stoker::kernels::avx2 {
namespace {

// Each builds on those before it.
// clang-format off
#include "kernels/vec/math.inc.h"
#include "kernels/vec/vector.inc.h"
#include "kernels/vec/recur.inc.h"
// clang-format on

}  // namespace

#include "kernels/vec/recur_functions.inc.h"

}  // namespace stoker::kernels::avx2
