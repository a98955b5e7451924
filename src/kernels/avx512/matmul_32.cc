#include "kernels/avx512/matmul_dots.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
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

}  // namespace stoker::kernels::avx512
