#include "kernels/amx/matmul_types.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::amx {

void fill_matmul(Table& table) noexcept {
  constexpr Isa kIsa = Isa::kAmx;
#include "kernels/vec/fill_many.inc.h"
}

}  // namespace stoker::kernels::amx
