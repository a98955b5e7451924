#include "kernels/kv_layout.h"

#include "kernels/table.h"

namespace stoker::kernels {

static_assert(AttentionScratch::kQueries == kMaxQueries);

int64_t attention_scratch_bytes(int k_dim, int v_dim, bool values_in_keys) {
  const AttentionScratch scratch(k_dim, v_dim);
  return (values_in_keys ? scratch.latent_total : scratch.total) * static_cast<int64_t>(sizeof(float));
}

int64_t index_scratch_bytes(int dim) {
  return AttentionScratch(dim, 0).turned_weights * static_cast<int64_t>(sizeof(float));
}

int64_t kv_tile_bytes(KvType type, int dim) {
  const int64_t scales = type == KvType::kQ8_0 ? 2 * kv_blocks(dim) : 0;
  return kTilePositions * (kv_padded_dim(type, dim) * kv_value_bytes(type) + scales);
}

}  // namespace stoker::kernels
