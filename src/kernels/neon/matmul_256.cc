#include "kernels/neon/matmul_dots.h"
#include "kernels/neon/matmul_types.h"

namespace stoker::kernels::neon {
namespace {

#include "kernels/vec/matmul_rows.inc.h"
//
#include "kernels/vec/matmul_256.inc.h"
//
#include "kernels/vec/matmul_expanded.inc.h"
//
#include "kernels/vec/matmul_decode.inc.h"
//
#include "kernels/vec/matmul_types_256.inc.h"

}  // namespace

const MatmulKernels kMatmulQ4K = kernels_of<Family256<Q4K>>();
const MatmulKernels kMatmulQ5K = kernels_expanding<Q5K>();
const MatmulKernels kMatmulQ6K = kernels_expanding<Q6K>();

}  // namespace stoker::kernels::neon
