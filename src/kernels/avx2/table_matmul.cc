#include "kernels/avx2/matmul_types.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::avx2 {

void fill_matmul(Table& table) noexcept {
  constexpr Isa kIsa = Isa::kAvx2;
#include "kernels/vec/fill_matmul.inc.h"
}

}  // namespace stoker::kernels::avx2
