#include "kernels/avxvnni/matmul_dots.h"
#include "kernels/avxvnni/matmul_types.h"

namespace stoker::kernels::avxvnni {
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

}  // namespace stoker::kernels::avxvnni
