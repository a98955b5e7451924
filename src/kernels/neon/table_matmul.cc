#include "kernels/neon/matmul_types.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::neon {

void fill_matmul(Table& table) noexcept {
  constexpr Isa kIsa = Isa::kNeon;
#include "kernels/vec/fill_matmul.inc.h"
}

}  // namespace stoker::kernels::neon
