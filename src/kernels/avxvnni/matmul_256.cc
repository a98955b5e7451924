#include "kernels/avxvnni/matmul_dots.h"
#include "kernels/avxvnni/matmul_types.h"

namespace stoker::kernels::avxvnni {
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

}  // namespace stoker::kernels::avxvnni
