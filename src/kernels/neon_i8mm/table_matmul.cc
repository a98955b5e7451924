#include "kernels/neon_i8mm/matmul_types.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::neon_i8mm {

void fill_matmul(Table& table) noexcept {
  constexpr Isa kIsa = Isa::kNeonI8mm;
#include "kernels/vec/fill_many.inc.h"
}

}  // namespace stoker::kernels::neon_i8mm
