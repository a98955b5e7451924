#include "kernels/avx2/matmul_dots.h"
#include "kernels/avx2/matmul_types.h"

namespace stoker::kernels::avx2 {
namespace {

#include "kernels/vec/matmul_rows.inc.h"
//
#include "kernels/vec/matmul_32.inc.h"
//
#include "kernels/vec/matmul_decode.inc.h"
//
#include "kernels/vec/matmul_types_32.inc.h"

}  // namespace

#include "kernels/vec/matmul_32_kernels.inc.h"

}  // namespace stoker::kernels::avx2
