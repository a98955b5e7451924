#include "kernels/avx2/functions.h"
#include "kernels/avx2/simd.h"
#include "kernels/kv_layout.h"

namespace stoker::kernels::avx2 {
namespace {

#include "kernels/vec/math.inc.h"
// Its users, each on top of those before it:
#include "kernels/vec/attention_blocks.inc.h"
#include "kernels/vec/attention_softmax.inc.h"
// and of these:
#include "kernels/vec/attention.inc.h"
#include "kernels/vec/kv_store.inc.h"

}  // namespace

#include "kernels/vec/attention_functions.inc.h"

}  // namespace stoker::kernels::avx2
