#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "base/result.h"
#include "gguf/types.h"
#include "kernels/args.h"

namespace stoker::kernels {

inline constexpr int kTypeIds = 64;  ///< Tensor type ids are below this.

/// Which form of the activations a matrix type reads.
enum class ActForm { kF32, kA256, kA32 };

/// All kernels for one instruction set. An entry that an instruction set lacks points at the scalar one, and
/// `origin` says so. All sets give the same bits. Kernels allocate nothing, lock nothing and throw nothing.
struct Table {
  Isa isa;
  std::array<MatmulKernels, kTypeIds> matmul;  ///< Null `one`: this type has no kernels at all.
  std::array<Isa, kTypeIds> matmul_isa;        ///< Where they come from.
  std::array<PackFn, kTypeIds> pack;
  std::array<RowFn, kTypeIds> row;

  void (*quantize_a256)(const QuantizeArgs&) noexcept;
  void (*quantize_a32)(const QuantizeArgs&) noexcept;

  /// y = x * gain / sqrt(mean(x^2) + eps). gain may be null (all ones). y may be x.
  void (*rms_norm)(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept;
  /// The same of d = x - mean(x): y = d * gain / sqrt(mean(d^2) + eps).
  void (*layer_norm)(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept;
  /// In the order of rms_norm's sum.
  float (*sum)(const float* x, int64_t n) noexcept;
  /// y = x + b; y may be x or b.
  void (*add)(const float* x, const float* b, int64_t n, float* y) noexcept;
  /// y = x * b; y may be x or b.
  void (*mul)(const float* x, const float* b, int64_t n, float* y) noexcept;
  /// y = x * s; y may be x.
  void (*scale)(const float* x, float s, int64_t n, float* y) noexcept;
  /// y = silu(gate) * up, y = gelu(gate) * up, in its tanh form or as it is; y may be gate or up.
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* y) noexcept;
  void (*gelu_mul)(const float* gate, const float* up, int64_t n, float* y) noexcept;
  void (*gelu_erf_mul)(const float* gate, const float* up, int64_t n, float* y) noexcept;
  /// y = gelu(x), y = max(x, 0)^2; y may be x.
  void (*gelu)(const float* x, int64_t n, float* y) noexcept;
  void (*gelu_erf)(const float* x, int64_t n, float* y) noexcept;
  void (*relu_squared)(const float* x, int64_t n, float* y) noexcept;
  /// y = x (alpha_p x + beta) above 0, alpha_n (exp(min(x, eps)) - 1 - x) + beta x elsewhere; y may be x.
  void (*xielu)(const float* x, const Xielu& p, int64_t n, float* y) noexcept;
  /// y = g / (1 + exp(-1.702 g)) * (u + 1), where g = min(gate, 7) and u = up within -7 ... 7. y may be gate or up.
  void (*clamped_silu_mul)(const float* gate, const float* up, int64_t n, float* y) noexcept;
  /// y = 1 / (1 + exp(-x)); y = up / (1 + exp(-gate)); y = log(1 + exp(x)); y = exp(x * a). y may be any of them.
  void (*sigmoid)(const float* x, int64_t n, float* y) noexcept;
  void (*sigmoid_mul)(const float* gate, const float* up, int64_t n, float* y) noexcept;
  void (*softplus)(const float* x, int64_t n, float* y) noexcept;
  void (*exp_mul)(const float* x, const float* a, int64_t n, float* y) noexcept;
  /// y = fma(a, x, y).
  void (*add_scaled)(float a, const float* x, int64_t n, float* y) noexcept;
  /// x = cap * tanh(x / cap) in place.
  void (*softcap)(float* x, float cap, int64_t n) noexcept;
  /// Rotates pairs (2i, 2i + 1) of x by the angles whose cos and sin are given, n_pairs of each, in place.
  void (*rope_interleaved)(float* x, const float* cos, const float* sin, int64_t n_pairs) noexcept;
  /// Rotates pairs (i, i + n_pairs).
  void (*rope_halves)(float* x, const float* cos, const float* sin, int64_t n_pairs) noexcept;
  /// Whether all values are finite.
  bool (*all_finite)(const float* x, int64_t n) noexcept;
  /// Index of the largest value; the lowest one of equals. NaN never wins. n > 0.
  int64_t (*argmax)(const float* x, int64_t n) noexcept;

  AttentionFn attention;
  AttentionMergeFn attention_merge;
  IndexFn index_scores;
  KvStoreFn store_k;
  KvStoreFn store_v;
  ConvolveFn convolve;
  RecurFn recur;
};

/// The table of one instruction set; kUnsupported when this build or CPU lacks it.
Result<const Table*> table_for(Isa isa);
/// The scalar reference that defines the bits.
const Table& scalar_table();
/// Every table that this CPU can run, scalar first.
std::vector<const Table*> runnable_tables();

/// Which activations a type reads. Only for types with kernels.
ActForm activation_form(gguf::TensorType type);

/// Bytes of one group of 16 rows in R16: 16 rows of the file, rounded up to 64. Nothing when k is no multiple of the
/// block.
int64_t group_bytes(gguf::TensorType type, int64_t k);

/// Scratch of one worker for attention over heads of these dimensions; with AttentionArgs::values_in_keys or without.
int64_t attention_scratch_bytes(int k_dim, int v_dim, bool values_in_keys = false);
/// Scratch of one worker for index_scores with heads of this dimension.
int64_t index_scratch_bytes(int dim);
/// Most queries in one AttentionArgs.
inline constexpr int kMaxQueries = 64;
/// Bytes of one K (or V) tile of one KV head.
int64_t kv_tile_bytes(KvType type, int dim);

}  // namespace stoker::kernels
