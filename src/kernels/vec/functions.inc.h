// What every instruction set defines besides the matrix products. Included inside its namespace; see table.h and
// docs/kernels.md for what the functions promise.
void quantize_a256(const QuantizeArgs& a) noexcept;
void quantize_a32(const QuantizeArgs& a) noexcept;

void rms_norm(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept;
void layer_norm(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept;
float sum(const float* x, int64_t n) noexcept;
void add(const float* x, const float* b, int64_t n, float* y) noexcept;
void mul(const float* x, const float* b, int64_t n, float* y) noexcept;
void scale(const float* x, float s, int64_t n, float* y) noexcept;
void silu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept;
void gelu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept;
void gelu(const float* x, int64_t n, float* y) noexcept;
void gelu_erf_mul(const float* gate, const float* up, int64_t n, float* y) noexcept;
void gelu_erf(const float* x, int64_t n, float* y) noexcept;
void relu_squared(const float* x, int64_t n, float* y) noexcept;
void xielu(const float* x, const Xielu& p, int64_t n, float* y) noexcept;
void clamped_silu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept;
void sigmoid(const float* x, int64_t n, float* y) noexcept;
void sigmoid_mul(const float* gate, const float* up, int64_t n, float* y) noexcept;
void softplus(const float* x, int64_t n, float* y) noexcept;
void exp_mul(const float* x, const float* a, int64_t n, float* y) noexcept;
void add_scaled(float a, const float* x, int64_t n, float* y) noexcept;
void softcap(float* x, float cap, int64_t n) noexcept;
void rope_interleaved(float* x, const float* cos, const float* sin, int64_t n_pairs) noexcept;
void rope_halves(float* x, const float* cos, const float* sin, int64_t n_pairs) noexcept;
bool all_finite(const float* x, int64_t n) noexcept;
int64_t argmax(const float* x, int64_t n) noexcept;

void attention(const AttentionArgs& a) noexcept;
void attention_merge(const AttentionMergeArgs& a) noexcept;
void index_scores(const IndexArgs& a) noexcept;
bool store_k(const KvStoreArgs& a) noexcept;
bool store_v(const KvStoreArgs& a) noexcept;
void convolve(const ConvolveArgs& a) noexcept;
void recur(const RecurArgs& a) noexcept;
