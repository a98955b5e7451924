// The rows and super-blocks of the quantizers. The instruction set provides
//   template <int kBlock> bool quantize_super(const float* x, int8_t* q, float* d, int16_t* sums)
// for 256 values with one scale per kBlock of them and one sum per 16 (kBlock 256) or 32 (kBlock 32). It returns false,
// with anything written, when a value is not finite.

/// `n` values of a super-block in 256, the rest zero; with `drop_bad` the blocks that are not finite are zero too.
template <int kBlock, bool kDropBad>
inline void copy_super(const float* x, int64_t n, float* copy) {
  for (int begin = 0; begin < kSuper; begin += kBlock) {
    bool finite = true;
    for (int i = begin; i < begin + kBlock; ++i) {
      copy[i] = i < n ? x[i] : 0.0f;
      finite &= __builtin_fabsf(copy[i]) < __builtin_inff();
    }
    for (int i = begin; kDropBad && !finite && i < begin + kBlock; ++i) copy[i] = 0.0f;
  }
}

template <int kBlock, int kSumBlock>
inline void quantize(const QuantizeArgs& a) {
  const int64_t n_super = (a.k + kSuper - 1) / kSuper;
  alignas(64) float copy[kSuper];
  for (int64_t row = a.row_begin; row < a.row_end; ++row) {
    for (int64_t s = 0; s < n_super; ++s) {
      const float* x = a.x + row * a.stride + s * kSuper;
      const int64_t left = a.k - s * kSuper, entry = s * a.n + row;
      int8_t* q = a.q + entry * kSuper;
      float* d = a.d + entry * (kSuper / kBlock);
      int16_t* sums = a.sums + entry * (kSuper / kSumBlock);
      const float* whole = x;
      if (left < kSuper) {
        copy_super<kBlock, false>(x, left, copy);
        whole = copy;
      }
      if (quantize_super<kBlock>(whole, q, d, sums)) continue;
      copy_super<kBlock, true>(x, left, copy);
      quantize_super<kBlock>(copy, q, d, sums);
      if (a.bad != nullptr) a.bad[row] = 1;
    }
  }
}
