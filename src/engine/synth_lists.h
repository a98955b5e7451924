// What the lists of shapes of synth_shapes.cc share: one list for each kind of family.
#pragma once

#include "engine/synth_shapes.h"

namespace stoker::engine {

inline constexpr std::string_view kUntied[] = {"output.weight"};
inline constexpr std::string_view kQkvBias[] = {"attn_q.bias", "attn_k.bias", "attn_v.bias"};
inline constexpr std::string_view kQkvBiasUntied[] = {"attn_q.bias", "attn_k.bias", "attn_v.bias", "output.weight"};
inline constexpr int64_t k256K = 262144, k1M = 1 << 20;
inline constexpr int64_t k4K = 4096, k8K = 8192, k16K = 16384, k32K = 32768, k40K = 40960, k128K = 131072,
                         k160K = 163840;

/// Published shapes, and those for tests and first steps. Source: the published configurations. Vocabulary; layers,
/// dimension, feed-forward; heads, key-value heads, their dimension; context, rope base, epsilon.
struct ShapeList {
  std::span<const SynthShape> published, tiny;
};
extern const ShapeList kDenseShapes, kMoeShapes, kLatentShapes, kHybridShapes;

}  // namespace stoker::engine
