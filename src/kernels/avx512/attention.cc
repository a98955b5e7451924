#include "kernels/avx512/functions.h"
#include "kernels/avx512/simd.h"
#include "kernels/kv_layout.h"

namespace stoker::kernels::avx512 {
namespace {

// Each builds on those before it.
// clang-format off
#include "kernels/vec/math.inc.h"
#include "kernels/vec/attention_blocks.inc.h"
#include "kernels/vec/attention_pairs.inc.h"
#include "kernels/vec/attention_softmax.inc.h"
#include "kernels/vec/attention_work.inc.h"
#include "kernels/vec/attention_direct.inc.h"
#include "kernels/vec/attention_bytes.inc.h"
#include "kernels/vec/attention_expanded.inc.h"
#include "kernels/vec/attention.inc.h"
#include "kernels/vec/attention_latent.inc.h"
#include "kernels/vec/index_scores.inc.h"
#include "kernels/vec/kv_store.inc.h"
// clang-format on

}  // namespace

#include "kernels/vec/attention_functions.inc.h"

}  // namespace stoker::kernels::avx512
