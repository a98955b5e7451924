#include "kernels/scalar/functions.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::scalar {

void fill_vector(Table& table) noexcept {
#include "kernels/vec/fill_vector.inc.h"
}

}  // namespace stoker::kernels::scalar
