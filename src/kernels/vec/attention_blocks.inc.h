// The inner loops of attention: a block of queries against a few vectors of positions (scores) or of dimensions
// (values). Each lane of each accumulator is one of the chains of docs/kernels.md, so a block may have any shape.

constexpr int kTile = static_cast<int>(kTilePositions);

/// How many vectors (at most `most`, a power of two) a block of n queries can have without spilling registers.
constexpr int vectors_for(int n, int most) {
  int vectors = most;
  while (vectors > 1 && n * vectors + (n < vectors ? n : vectors) + 1 > kRegisters) vectors /= 2;
  return vectors;
}
/// The same for bf16: three sums per output, two operands.
constexpr int pair_vectors_for(int n, int most) {
  int vectors = most;
  while (vectors > 1 && 3 * n * vectors + 4 > kRegisters) vectors /= 2;
  return vectors;
}

// How the values of a cache become floats, and at most how many lines of what comes next are fetched beside one row of
// them. A panel is a part of a tile that was expanded to f32 before.
struct HalfCache {
  using Value = uint16_t;
  static constexpr int kMostLines = 8;
  STOKER_INLINE static Floats load(const Value* p) { return load_halves(p); }
};
struct FloatCache {
  using Value = float;
  static constexpr int kMostLines = 8;
  STOKER_INLINE static Floats load(const Value* p) { return load_floats(p); }
};
/// q8_0: int8 that are multiplied by the scale of their block.
struct ByteCache {
  using Value = int8_t;
  STOKER_INLINE static Floats load(const Value* p) { return load_bytes(p); }
};
struct Panel {
  using Value = float;
  static constexpr int kMostLines = 1;
  STOKER_INLINE static Floats load(const Value* p) { return load_floats(p); }
};
/// Bytes of a K or V tile.
template <class Cache>
STOKER_INLINE int64_t tile_bytes_of(int dim) {
  constexpr bool kScales = sizeof(typename Cache::Value) == 1;
  return kTile * (dim * static_cast<int64_t>(sizeof(typename Cache::Value)) + (kScales ? 2 * kv_blocks(dim) : 0));
}

/// Eight values, for the last dimensions of a head when vectors are wider.
template <class Cache>
struct Eight {
  using Value = typename Cache::Value;
  static constexpr int kMostLines = 0;
  STOKER_INLINE static Floats load(const Value* p) { return load_8(p); }
};

/// What is wanted next from memory, fetched to L2 evenly while a block is computed: in bursts it would wait for itself.
struct Ahead {
  const std::byte* at;
  int64_t step;  ///< Bytes per iteration; the reader covers up to kLines lines of 64.
};
template <int kLines>
STOKER_INLINE void fetch(Ahead& ahead) {
  STOKER_UNROLL for (int i = 0; i < kLines; ++i) prefetch_l2(ahead.at + 64 * i);
  ahead.at += ahead.step;
}
/// `bytes` from `at` on, over that many iterations.
STOKER_INLINE Ahead spread(const std::byte* at, int64_t bytes, int64_t iterations) {
  return {at, (bytes + iterations - 1) / iterations};
}
constexpr int lines_for(int bytes, int most = 8) {
  const int lines = bytes < 64 ? 1 : bytes / 64;
  return lines < most ? lines : most;
}

/// acc[i][b] += x[i * kStride] * vector b at y.
template <class Cache, int kQ, int kVectors, int kStride>
STOKER_INLINE void multiply_add(const float* x, const typename Cache::Value* y, Floats (&acc)[kQ][kVectors]) {
  if constexpr (kQ < kVectors) {
    Floats xs[kQ];
    STOKER_UNROLL for (int i = 0; i < kQ; ++i) xs[i] = floats(x[i * kStride]);
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
      const Floats v = Cache::load(y + kWidth * b);
      STOKER_UNROLL for (int i = 0; i < kQ; ++i) acc[i][b] = fma(xs[i], v, acc[i][b]);
    }
  } else {
    Floats vs[kVectors];
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) vs[b] = Cache::load(y + kWidth * b);
    STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
      const Floats v = floats(x[i * kStride]);
      STOKER_UNROLL for (int b = 0; b < kVectors; ++b) acc[i][b] = fma(v, vs[b], acc[i][b]);
    }
  }
}

template <int kQ, int kVectors>
STOKER_INLINE void clear(Floats (&acc)[kQ][kVectors]) {
  STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) acc[i][b] = floats(0.0f);
  }
}

struct ScoreJob {
  const float* q;  ///< [dims][kQ]
  const void* k;   ///< First position of dimension 0.
  int64_t stride;  ///< From one dimension (bf16: pair of dimensions) to the next, in values.
  int dims;
  float* scores;  ///< [kQ][64], from the first position.
  Ahead ahead;
};

template <class Cache, int kQ, int kVectors>
__attribute__((noinline)) void score_block(const ScoreJob& job) noexcept {
  constexpr int kLines =
      lines_for(kVectors * kWidth * static_cast<int>(sizeof(typename Cache::Value)), Cache::kMostLines);
  Floats acc[kQ][kVectors];
  clear(acc);
  const auto* k = static_cast<const typename Cache::Value*>(job.k);
  const float* q = job.q;
  Ahead ahead = job.ahead;
  for (int d = 0; d < job.dims; ++d, k += job.stride, q += kQ) {
    multiply_add<Cache, kQ, kVectors, 1>(q, k, acc);
    fetch<kLines>(ahead);
  }
  STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) store_floats(job.scores + kTile * i + kWidth * b, acc[i][b]);
  }
}

struct Range {
  int begin, end;
};

struct ValueJob {
  const float* weights;  ///< [kQ][64]
  const void* v;         ///< First dimension of position 0 (bf16: of positions 0 and 1).
  int64_t stride;        ///< From one position (bf16: pair of positions) to the next, in values.
  const Range* seen;     ///< By each query; empty: the query is left alone.
  Range all, common;     ///< Seen by at least one, by all that see any.
  float* out;            ///< [kQ][out_stride]
  int64_t out_stride;
  const float* old_factor;  ///< out = out * old_factor + (sum of this tile) * new_factor, per query.
  const float* new_factor;
  Ahead ahead;
};

template <int kQ, int kVectors>
STOKER_INLINE void merge_values(const ValueJob& job, const Floats (&acc)[kQ][kVectors]) {
  STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
    if (job.seen[i].begin >= job.seen[i].end) continue;
    float* out = job.out + i * job.out_stride;
    const Floats old_factor = floats(job.old_factor[i]), new_factor = floats(job.new_factor[i]);
    STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
      float* at = out + kWidth * b;
      store_floats(at, fma(load_floats(at), old_factor, mul(acc[i][b], new_factor)));
    }
  }
}

STOKER_INLINE bool contains(Range range, int p) { return p >= range.begin && p < range.end; }

/// Positions that not all queries see: what a query does not see may hold NaN, and 0 * NaN would stay in its sum.
template <class Cache, int kQ, int kVectors>
STOKER_INLINE void ragged_positions(const ValueJob& job, int begin, int end, Floats (&acc)[kQ][kVectors]) {
  const auto* v = static_cast<const typename Cache::Value*>(job.v);
  for (int p = begin; p < end; ++p) {
    STOKER_UNROLL for (int i = 0; i < kQ; ++i) {
      if (!contains(job.seen[i], p)) continue;
      const Floats weight = floats(job.weights[kTile * i + p]);
      STOKER_UNROLL for (int b = 0; b < kVectors; ++b) {
        acc[i][b] = fma(weight, Cache::load(v + p * job.stride + kWidth * b), acc[i][b]);
      }
    }
  }
}

template <class Cache, int kQ, int kVectors>
__attribute__((noinline)) void value_block(const ValueJob& job) noexcept {
  constexpr int kLines =
      lines_for(kVectors * kWidth * static_cast<int>(sizeof(typename Cache::Value)), Cache::kMostLines);
  Floats acc[kQ][kVectors];
  clear(acc);
  ragged_positions<Cache>(job, job.all.begin, job.common.begin, acc);
  const auto* v = static_cast<const typename Cache::Value*>(job.v) + job.common.begin * job.stride;
  Ahead ahead = job.ahead;
  for (int p = job.common.begin; p < job.common.end; ++p, v += job.stride) {
    multiply_add<Cache, kQ, kVectors, kTile>(job.weights + p, v, acc);
    fetch<kLines>(ahead);
  }
  ragged_positions<Cache>(job, job.common.end, job.all.end, acc);
  merge_values(job, acc);
}
