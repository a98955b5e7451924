#include "kernels/neon/functions.h"
#include "kernels/neon/simd.h"

namespace stoker::kernels::neon {
namespace {

#include "kernels/vec/math.inc.h"
#include "kernels/vec/vector.inc.h"

}  // namespace

#include "kernels/vec/vector_functions.inc.h"

}  // namespace stoker::kernels::neon
