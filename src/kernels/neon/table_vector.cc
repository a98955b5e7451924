#include "kernels/neon/functions.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::neon {

void fill_vector(Table& table) noexcept {
#include "kernels/vec/fill_vector.inc.h"
}

}  // namespace stoker::kernels::neon
