#include "kernels/avx2/functions.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::avx2 {

void fill_vector(Table& table) noexcept {
#include "kernels/vec/fill_vector.inc.h"
}

}  // namespace stoker::kernels::avx2
