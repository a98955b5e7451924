#include "kernels/tables_internal.h"

namespace stoker::kernels::scalar {

void fill_matmul(Table& table) noexcept { (void)table; }

}  // namespace stoker::kernels::scalar
