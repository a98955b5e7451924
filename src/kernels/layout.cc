#include "kernels/r16.h"
#include "kernels/table.h"

namespace stoker::kernels {

// 0 for what cannot be: no kernels, no columns, a row that ends inside a block. The caller has refused those by name.
int64_t group_bytes(gguf::TensorType type, int64_t k) {
  const R16Layout layout = r16_layout(type);
  if (layout.weights == 0 || k <= 0) return 0;
  if (type != gguf::TensorType::kBF16 && k % layout.weights != 0) return 0;
  return r16_group_bytes(layout, k);
}

ActForm activation_form(gguf::TensorType type) {
  const R16Layout layout = r16_layout(type);
  STOKER_CHECK(layout.weights != 0);
  if (layout.weights == 256) return ActForm::kA256;
  return layout.weights == 32 ? ActForm::kA32 : ActForm::kF32;
}

}  // namespace stoker::kernels
