#include "kernels/avx512/matmul_dots.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

#include "kernels/vec/matmul_rows.inc.h"
//
#include "kernels/vec/matmul_256.inc.h"
//
#include "kernels/vec/matmul_decode.inc.h"
//
#include "kernels/vec/matmul_types_256.inc.h"

}  // namespace

}  // namespace stoker::kernels::avx512

#include "kernels/avx512/matmul_pairs.h"

namespace stoker::kernels::avx512 {

const MatmulKernels kMatmulQ4K = kernels_in_pairs<Q4K>();
const MatmulKernels kMatmulQ5K = kernels_in_pairs<Q5K>();
const MatmulKernels kMatmulQ6K = kernels_in_pairs<Q6K>();

}  // namespace stoker::kernels::avx512
