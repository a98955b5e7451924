#include "kernels/neon/matmul_simd.h"
#include "kernels/neon/matmul_types.h"

namespace stoker::kernels::neon {
namespace {

#include "kernels/vec/matmul_rows.inc.h"
//
#include "kernels/vec/matmul_float.inc.h"

}  // namespace

const MatmulKernels kMatmulF32 = kernels_of<FamilyFloat<F32>>();
const MatmulKernels kMatmulF16 = kernels_of<FamilyFloat<F16>>();
const MatmulKernels kMatmulBf16 = kernels_of<FamilyFloat<Bf16>>();

}  // namespace stoker::kernels::neon
