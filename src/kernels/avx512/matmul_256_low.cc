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

const MatmulKernels kMatmulQ2K = kernels_in_pairs<Q2K>();
const MatmulKernels kMatmulQ3K = kernels_in_pairs<Q3K>();
const MatmulKernels kMatmulIq4Xs = kernels_in_pairs<Iq4Xs>();

}  // namespace stoker::kernels::avx512
