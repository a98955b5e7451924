#include "kernels/neon/matmul_dots.h"
#include "kernels/neon/matmul_types.h"

namespace stoker::kernels::neon {
namespace {

#include "kernels/vec/matmul_rows.inc.h"
//
#include "kernels/vec/matmul_256.inc.h"
//
#include "kernels/vec/matmul_decode.inc.h"
//
#include "kernels/vec/matmul_types_256.inc.h"

}  // namespace

const MatmulKernels kMatmulQ2K = kernels_of<Family256<Q2K>>();
const MatmulKernels kMatmulQ3K = kernels_of<Family256<Q3K>>();
const MatmulKernels kMatmulIq4Xs = kernels_of<Family256<Iq4Xs>>();

}  // namespace stoker::kernels::neon
