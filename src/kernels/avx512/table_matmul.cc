#include "kernels/avx512/matmul_types.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::avx512 {

void fill_matmul(Table& table) noexcept {
  constexpr Isa kIsa = Isa::kAvx512;
#include "kernels/vec/fill_matmul.inc.h"
}

}  // namespace stoker::kernels::avx512
