#include "kernels/avx2/functions.h"
#include "kernels/avx2/simd.h"

namespace stoker::kernels::avx2 {
namespace {

#include "kernels/vec/math.inc.h"
#include "kernels/vec/vector.inc.h"

}  // namespace

#include "kernels/vec/vector_functions.inc.h"

}  // namespace stoker::kernels::avx2
