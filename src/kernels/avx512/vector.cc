#include "kernels/avx512/functions.h"
#include "kernels/avx512/simd.h"

namespace stoker::kernels::avx512 {
namespace {

#include "kernels/vec/math.inc.h"
#include "kernels/vec/vector.inc.h"

}  // namespace

#include "kernels/vec/vector_functions.inc.h"

}  // namespace stoker::kernels::avx512
